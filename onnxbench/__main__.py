"""Start `onnxbench`: hear signals before anything slow is imported."""

import os
import sys
from typing import NoReturn

from onnxbench import interrupts


def main() -> NoReturn:
    """Run the command line; an interrupt that comes before it is there ends it as quietly as a later one."""
    try:
        interrupts.hear()
        from onnxbench import cli
    except KeyboardInterrupt as stop:
        print("error[OB801]: interrupted; nothing was written", file=sys.stderr, flush=True)
        os._exit(128 + interrupts.number_of(stop))
    cli.main()


if __name__ == "__main__":
    main()
