"""A whole installation in one process on virtual time: doubles of what isn't ours (reliability.md Q3).

`loop` is the machine (time, threads, processes), `apiserver` the API server, `git` and `forge` the git
host, `kubelet` starts pods, `operator` and `pods` put the real programs together, `world` is all of it.
"""
