"""Reads the caller's credentials from its own environment.

layer: environment
control: without a sandbox they are all there
"""


def scene(s):
    for name in ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK",
                 "DATABASE_URL",
                 "LC_SECRET", "WARD_SECRET", "TERM_SECRET"):
        s.env[name] = s.token


def attack(a):
    print(dict(os.environ))
    print(slurp("/proc/self/environ"))
