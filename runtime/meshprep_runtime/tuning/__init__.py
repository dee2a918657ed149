"""What a loop runs when nobody says: timed, recorded in the plan, chosen by rule."""
