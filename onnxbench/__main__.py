"""Start `onnxbench`: hear signals before anything slow is imported."""


def main() -> None:
    """Run the command line; an interrupt that comes before it is there ends it as quietly as a later one."""
    try:
        from onnxbench import interrupts

        interrupts.hear()
        with interrupts.held():
            from onnxbench import cli
        cli.main()
    except KeyboardInterrupt as stop:
        _leave(*stop.args)


def _leave(number: int = 2) -> None:
    import os
    import sys

    said = '{"code": "OB801", "message": "interrupted; nothing was written", "hint": ""}'
    if "--json" in sys.argv[1:]:
        print(f'{{"schema": "onnxbench.error/1", "error": {said}}}', flush=True)
    print("error[OB801]: interrupted; nothing was written", file=sys.stderr, flush=True)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
