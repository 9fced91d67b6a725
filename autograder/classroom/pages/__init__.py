"""Show what students wrote: as pages that run no script, load nothing, and are made in bounded time."""
