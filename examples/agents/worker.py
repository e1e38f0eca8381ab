"""Takes one task, does it, and sends the result."""
import json
import subprocess

line = subprocess.run(["ward", "receive", "tasks", "--wait", "30"], capture_output=True,
                      text=True).stdout
with open(json.loads(line)["message"]["file"]) as f:
    words = len(f.read().split())
with open("honest/log", "w") as f:
    f.write(f"{words}\n")
subprocess.run(["ward", "send", "results", json.dumps({"words": words})])
