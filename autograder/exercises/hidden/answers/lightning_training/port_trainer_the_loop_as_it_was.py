def port(run):
    torch.manual_seed(run["seed"])
    model = MaskedLanguageModel(TransformerConfig(**run["sizes"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for tokens, labels in run["train"]:
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, run["train"], TensorBoardLogger(run["folder"])
