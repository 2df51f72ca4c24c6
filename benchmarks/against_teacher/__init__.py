"""How close students come to their teacher on held-out photos; the cards of the zoo cite it."""
