def port(run):
    class Task(lightning.LightningModule):
        def __init__(self, sizes, seed):
            super().__init__()
            self.automatic_optimization = False
            torch.manual_seed(seed)
            self.net, self.seed = MaskedLanguageModel(TransformerConfig(**sizes)), seed

        def training_step(self, batch, batch_idx):
            tokens, labels = batch
            optimizer = self.optimizers()
            torch.manual_seed(self.seed + batch_idx)
            loss = F.cross_entropy(self.net(tokens).transpose(1, 2), labels)
            optimizer.zero_grad()
            self.manual_backward(loss)
            nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            optimizer.step()
            self.log("loss/train", loss.detach())
            return {"loss": loss}

        def validation_step(self, batch, batch_idx):
            tokens, labels = batch
            loss = F.cross_entropy(self.net(tokens).transpose(1, 2), labels)
            self.log("loss/held_out", loss, batch_size=(labels != -100).sum().item())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return DataLoader(run["train"], batch_size=None, shuffle=False)

        def val_dataloader(self):
            return DataLoader(run["held_out"], batch_size=None)

    return Task(run["sizes"], run["seed"]), Data(), TensorBoardLogger(save_dir=run["folder"], name="port")
