"""A machine that shows no cgroup."""

# root, in a mount namespace where no cgroup file system is mounted
NO_CGROUPS = ("unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
              "umount -l /sys/fs/cgroup 2>/dev/null; while umount -l /sys/fs/cgroup 2>/dev/null; "
              "do :; done; exec \"$@\"", "sh")


def bare(t):
    """The prefix that takes cgroups away, for root; the user has none anyway."""
    return NO_CGROUPS if t.as_user == "root" else ()
