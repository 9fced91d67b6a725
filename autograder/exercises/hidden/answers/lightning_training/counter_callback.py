def counter_callbacks(count, every: int, on: bool) -> list:
    """Return a list of callbacks; about 10 lines."""

    class Counters(lightning.Callback):
        seen = 0

        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            step = trainer.global_step
            if step == self.seen or step % every or trainer.logger is None:
                return
            self.seen = step
            values = count(task, batch)
            trainer.logger.log_metrics({f"counters/{name}": value for name, value in values.items()}, step=step)

    return [Counters()] if on else []
