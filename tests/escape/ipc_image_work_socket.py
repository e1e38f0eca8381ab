"""Connects to a socket that a step of `ward image build` has made meanwhile, from a sandbox that
was given the store of images read-only.

layer: mount namespace
control: the same user without a sandbox is served
"""
import os
import socket


def scene(s):
    images = os.path.join(s.t.state_dir, "images")
    place = os.path.join(images, "work-20200101-000000-aaaaaa", "root", "opt")
    s.t.run("mkdir", "-p", "-m", "700", s.t.state_dir, images, check=True)
    s.t.run("mkdir", "-p", place, check=True)
    path = os.path.join(place, "step.sock")
    if os.path.exists(path):	# of the control
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    s.serve(listener)
    s.options += ["--ro", images]
    s.args = {"path": path}


def attack(a):
    def call():
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(a["path"])
            print(c.recv(100).decode())
    attempt(call)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
