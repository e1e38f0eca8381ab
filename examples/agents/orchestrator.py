"""Gives each of two workers a task and waits for their results. One of the workers is hostile."""
import json
import subprocess

WORKERS = {"honest": "worker.py", "hostile": "hostile.py"}


def ward(*words):
    return subprocess.run(["ward", *words], capture_output=True, text=True)


workers = {name: subprocess.Popen(["ward", "run", "--name", name, "--rw", name, "--timeout", "60",
                                   "--", "python3", program])
           for name, program in WORKERS.items()}
for name in workers:
    ward("send", "tasks", "--to", name, json.dumps({"file": "ward.yaml"}))
answers = {}
while len(answers) < len(workers):
    answer = json.loads(ward("receive", "results", "--wait", "30").stdout)
    # who sent it is ward's word; what it says is no more than of the right type
    answers.setdefault(answer["from"], answer["message"]["words"])
for name, words in answers.items():
    print(f"{name} counted {words} words", flush=True)
for name, process in workers.items():
    print(f"{name} ended with {process.wait()}", flush=True)
