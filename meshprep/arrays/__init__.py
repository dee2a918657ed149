"""The front door for arrays: one converter of inputs, and a call for each task.

Nothing here reads or writes files; :mod:`meshprep.pipeline` does.
"""
