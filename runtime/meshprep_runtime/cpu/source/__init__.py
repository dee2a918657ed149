"""The text of a loop for a CPU: the elements, the forms of their code, the threads."""
