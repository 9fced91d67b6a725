"""Strategy: write the withdrawn function's own code back through the file of the process's memory. Surface: /proc/self/mem, which writes to what is read-only.

Class: answer theft. Unprotected: grader exemplary gives full marks. Level: 5.
Must get 0: a worker that answers questions opens no file to write.
"""

# The file tests/submissions/hostile/13_predict_backend/exported_function.py of this repository stands here.

PATH = LIBRARY._name


def restore():
    address = ctypes.cast(choice, ctypes.c_void_p).value
    maps = [line.split() for line in open("/proc/self/maps")]
    mapped = next(each for each in maps if each[1] == "r-xp" and each[-1] == PATH)
    at = address - int(mapped[0].split("-")[0], 16) + int(mapped[2], 16)  # in the file
    with open(PATH, "rb") as file:
        file.seek(at)
        code = file.read(16)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(code)


restore()
