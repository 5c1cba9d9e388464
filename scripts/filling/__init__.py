"""A store with years in it: what `scripts/bench_store` measures."""
