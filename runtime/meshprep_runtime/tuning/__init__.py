"""The best way to run a loop: timed, recorded in the plan, or chosen by rule."""
