def port(run: dict) -> tuple:
    """Return task, data and logger; about 24 lines."""

    class Task(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(run["seed"])
            self.model = MaskedLanguageModel(TransformerConfig(**run["sizes"]))

        def loss(self, tokens, labels):
            return F.cross_entropy(self.model(tokens).flatten(0, 1), labels.flatten())

        def training_step(self, batch, batch_idx):
            torch.manual_seed(run["seed"] + self.global_step)
            loss = self.loss(*batch)
            self.log("loss/train", loss)
            return loss

        def validation_step(self, batch, batch_idx):
            self.log("loss/held_out", self.loss(*batch), batch_size=int((batch[1] >= 0).sum()))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    data = lightning.LightningDataModule()
    data.train_dataloader = lambda: DataLoader(run["train"], batch_size=None)
    data.val_dataloader = lambda: DataLoader(run["held_out"], batch_size=None)
    return Task(), data, TensorBoardLogger(run["folder"])
