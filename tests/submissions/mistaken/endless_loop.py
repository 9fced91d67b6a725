"""A loop that never ends, in one exercise of two.

Gets 0 with the reason where it loops, and its points in the other notebook; nobody else waits for it.
"""

# %% answer 01_scaled_dot_product = 0
# nothing was answered in this notebook: the released stub
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    raise NotImplementedError


# %% answer 04_read_a_graph = 0
def read_graph(rows):
    alive = {"output"}
    while True:
        for row in rows:
            if row["name"] in alive:
                alive.update(row["args"])
    return {"dead": [row["name"] for row in rows if row["name"] not in alive]}
