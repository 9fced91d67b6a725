def run_with_ranges(program: dict) -> list[str]:
    """Return the log of a run with ranges; a good answer has about 20 lines."""
    log = []

    @contextmanager
    def named(name):
        log.append(f"begin {name}")
        try:
            yield
        finally:
            log.append(f"end {name}")

    def run(part):
        with named(part["name"]):
            for item in part["body"]:
                if isinstance(item, str):
                    log.append(item.rstrip("!"))
                    if item.endswith("!"):
                        raise RuntimeError(item)
                else:
                    attempt(item)

    def attempt(part):
        try:
            run(part)
        except RuntimeError:
            if not part["catches"]:
                raise

    attempt({**program, "catches": True})
    return log
