"""How close students come to their teacher on held-out photos (--help says how)."""

from distill.evaluation.fidelity.fidelity import main

if __name__ == "__main__":
    main()
