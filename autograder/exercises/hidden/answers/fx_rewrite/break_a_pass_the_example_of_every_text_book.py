def counterexample(question):
    def program(x):
        h = x * 1
        h.relu_()
        return h

    return program, -torch.ones(4)
