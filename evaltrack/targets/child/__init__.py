"""A user's function in a process of its own, so that nothing it does can end, alter or hold up an evaluation.

`pool` keeps the processes and starts one again that ended, `process` is one of them as its parent sees it, `server`
runs inside of it, and `frames` is what the two say to each other over a socket.
"""
