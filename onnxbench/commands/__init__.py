"""One file per command: parse, call one service, render. Each has `register(app)`; a new file is a new command."""
