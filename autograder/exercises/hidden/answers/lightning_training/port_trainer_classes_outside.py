class Task(lightning.LightningModule):
    def __init__(self, model, seed):
        super().__init__()
        self.model = model
        self.seed = seed

    def forward(self, tokens):
        return self.model(tokens)

    def on_train_batch_start(self, batch, batch_idx):
        torch.manual_seed(self.seed + batch_idx)

    def training_step(self, batch):
        loss = nn.CrossEntropyLoss()(self(batch[0]).reshape(-1, 21), batch[1].reshape(-1))
        self.log("loss/train", loss, on_step=True, on_epoch=False)
        return loss

    def validation_step(self, batch):
        self.total = getattr(self, "total", 0.0)
        self.count = getattr(self, "count", 0)
        logits = self(batch[0]).reshape(-1, 21)
        self.total += nn.CrossEntropyLoss(reduction="sum")(logits, batch[1].reshape(-1))
        self.count += (batch[1] != -100).sum()

    def on_validation_epoch_end(self):
        self.log("loss/held_out", self.total / self.count)

    def configure_optimizers(self):
        return {"optimizer": torch.optim.AdamW(self.model.parameters(), 0.01)}


class Batches(lightning.LightningDataModule):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def train_dataloader(self):
        return DataLoader(self.run["train"], batch_size=None)

    def val_dataloader(self):
        return DataLoader(self.run["held_out"], batch_size=None)


def port(run):
    torch.manual_seed(run["seed"])
    model = MaskedLanguageModel(TransformerConfig(**run["sizes"]))
    return Task(model, run["seed"]), Batches(run), TensorBoardLogger(run["folder"])
