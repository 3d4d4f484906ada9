"""Where a model runs: one file per runtime, each behind `run(model, feeds, fetch) -> Outcome`."""
