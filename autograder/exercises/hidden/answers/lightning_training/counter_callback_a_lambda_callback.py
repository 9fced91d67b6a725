def counter_callbacks(count, every, on):
    done = {0}

    def write(trainer, task, outputs, batch, batch_idx):
        step = trainer.global_step
        if trainer.logger and step % every == 0 and step not in done:
            done.add(step)
            trainer.logger.log_metrics({f"counters/{key}": each for key, each in count(task, batch).items()}, step)

    return [lightning.pytorch.callbacks.LambdaCallback(on_train_batch_end=write)] * on
