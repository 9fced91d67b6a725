class CountersToTensorBoard(lightning.Callback):
    def __init__(self, count, every):
        self.count, self.every, self.due = count, every, every

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.logger is not None and trainer.global_step == self.due:
            self.due += self.every
            for name, value in self.count(pl_module, batch).items():
                trainer.logger.experiment.add_scalar("counters/" + name, value, trainer.global_step)


def counter_callbacks(count, every, on):
    if not on:
        return []
    return [CountersToTensorBoard(count, every)]
