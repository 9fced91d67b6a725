def ask_doctor(names: list[str]) -> dict[str, str]:
    """Say what the doctor finds for these names; a good answer has one line."""
    return {finding.name: finding.found for finding in doctor().findings if finding.name in names}
