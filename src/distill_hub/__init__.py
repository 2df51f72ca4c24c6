"""Students and sets for others: files without a run, torch.hub, the Hugging Face Hub."""
