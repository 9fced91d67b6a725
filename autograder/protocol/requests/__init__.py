"""The requests of each kind of answer and their replies, one kind a file; stems as in `worker.kinds` and `host.kinds`.

`loads` holds what a worker is given first, and `rounds` what is asked under the host's clock.
"""
