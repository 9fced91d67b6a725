def read_table(rows: list[dict]) -> dict[str, str]:
    """Find three nodes by their columns; a good answer has about 5 lines."""
    by_users = {row["users"]: row["node"] for row in rows if row["op"] != "output"}
    leaf = [row["node"] for row in rows if row["op"] == "call_module"]
    return {"leaf_module": leaf[0], "two_users": by_users[2], "dead": by_users[0]}
