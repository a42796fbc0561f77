"""How a judge is learned: data, losses, trainer, export, tracking."""
