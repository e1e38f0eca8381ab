"""Attacks by way of git data: what a run leaves in repositories, in new ones and in shapes of them
must not run, write outside or call anybody when a person uses git afterwards. The host's git is the
judge (harness/git_battery.py).

Each case works in a repository of its own below the workspace, so that one run plants many. Inside:
$M/NAME is the marker, $V a directory of somebody else, $URL an address that counts its callers, $R
the repository, $ID a blob that is a hook script.
"""
import os
import time

from harness import by_turns, git_battery as battery
from harness import host, native_only, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "1700000000 +0000",
       "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_EDITOR": "true"}

PASSED = [word for name in WHO for word in ("--env", name)]

PRELUDE = r'''
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=false GIT_CONFIG_KEY_1=core.hooksPath \
       GIT_CONFIG_VALUE_1=/dev/null GIT_CONFIG_KEY_2=protocol.file.allow GIT_CONFIG_VALUE_2=always
hook() { mkdir -p "$1"; for h in post-checkout post-index-change pre-commit post-commit reference-transaction post-merge; do
         printf '#!/bin/sh\ntouch %s\n' "$MARK" > "$1/$h"; chmod +x "$1/$h"; done; }
evil() { printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n\tfsmonitor = "touch %s; false"\n' \
         "${1:-..}" "$MARK"; printf '\tpager = "touch %s; cat"\n\tsshCommand = touch %s\n[diff]\n\texternal = touch %s\n' \
         "$MARK" "$MARK" "$MARK"; }
shape() { mkdir -p "$1/objects" "$1/refs/heads"; echo 'ref: refs/heads/main' > "$1/HEAD"; evil "${2:-..}" > "$1/config"
          hook "$1/hooks"; }
mkindex() { python3 - "$@" <<'END'
import hashlib, os, struct, sys
version, out, paths = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
ident, mode, ext = os.environ.get("ID", "0" * 40), int(os.environ.get("MODE", "100755"), 8), os.environb.get(b"EXT", b"")
entries, before = b"", b""
for path in sorted(os.fsencode(p) for p in paths):
    flags = struct.pack(">H", min(len(path), 4095) | (0x4000 if version == 3 else 0))
    e = struct.pack(">10I", *[0] * 6, mode, 0, 0, 0) + bytes.fromhex(ident) + flags + (b"\0\0" if version == 3 else b"")
    if version == 4:
        same = len(os.path.commonprefix([before, path]))
        e += bytes([len(before) - same]) + path[same:] + b"\0"
    else:
        e += path
        e += b"\0" * (8 - len(e) % 8)
    before = path
    entries += e
data = b"DIRC" + struct.pack(">II", version, len(paths)) + entries + ext
end = bytes(20) if os.environ.get("SUM") == "zero" else b"x" * 20 if os.environ.get("SUM") else hashlib.sha1(data).digest()
open(out, "wb").write(data + end)
END
}
gitlink() { git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),$1"; }
commit_tree() { T=$(printf "$1" "${@:2}" | git mktree --missing) && git update-ref refs/heads/main \
                $(git commit-tree -p HEAD -m agent "$T"); }
rebase() { mkdir -p "$1"; git rev-parse HEAD > "$1/onto"; git rev-parse HEAD > "$1/orig-head"; echo refs/heads/main > "$1/head-name"
           echo 1 > "$1/msgnum"; echo 1 > "$1/end"; : > "$1/interactive"; : > "$1/done"; }
'''

# ---- in the private copy of a repository that was there before ----
VIEW = {
    "index-hook": "mkindex 2 .git/index .git/hooks/post-checkout",
    "index-out": "mkindex 2 .git/index ../outside-$N $V/file",
    "index-dotdot-middle": "mkindex 2 .git/index a/../../outside-$N",
    "index-v3": "mkindex 3 .git/index .git/hooks/post-checkout",
    "index-v4": "mkindex 4 .git/index .gita .git/hooks/post-checkout",
    "index-case": "mkindex 2 .git/index .GIT/hooks/post-checkout .Git/hooks/pre-commit",
    "index-zero-width": r"mkindex 2 .git/index $'.g\u200cit/hooks/post-checkout'",
    "index-short-name": "mkindex 2 .git/index 'GIT~1/hooks/post-checkout'",
    "index-dots": "mkindex 2 .git/index '.git./hooks/x' '.git /hooks/y' "
    "'.git::$INDEX_ALLOCATION/hooks/z'",
    "index-nested": "mkindex 2 .git/index sub/.git/config sub/.git/HEAD",
    "index-wrong-sum": "SUM=bad mkindex 2 .git/index .git/hooks/post-checkout",
    "index-zero-sum": "SUM=zero mkindex 2 .git/index .git/hooks/post-checkout",
    "index-empty-part": "mkindex 2 .git/index a//b /b",
    "index-mode-zero": "MODE=0 mkindex 2 .git/index f",
    "index-mode-setid": "MODE=104755 mkindex 2 .git/index f",
    "index-extension": "EXT=$'EVIL\\1' mkindex 2 .git/index f",
    "index-twice": "mkindex 2 .git/index link link/x; MODE=120000 mkindex 2 .git/index link",
    "index-link-then-file": """T=$(printf %s "$V" | git hash-object -w --stdin); MODE=120000 ID=$T mkindex 2 .git/index d d/file""",
    "index-truncated": "head -c 50 .git/index > i; cat i > .git/index",
    "index-fifo": "rm .git/index; mkfifo .git/index",
    "index-link": "mkindex 2 alt .git/hooks/post-checkout; rm .git/index; ln -s ../alt .git/index",
    "index-directory": "rm .git/index; mkdir .git/index; echo x > .git/index/x",
    "split-shared": """git update-index --split-index; S=$(ls .git/sharedindex.*); chmod u+w $S; mkindex 2 $S .git/hooks/post-checkout""",
    "split-renamed": """mkindex 2 s .git/hooks/post-checkout; H=$(tail -c 20 s | od -An -tx1 | tr -d ' \\n'); cp s .git/sharedindex.$H
        python3 - $H <<'END'
import hashlib, struct, sys
body = bytes.fromhex(sys.argv[1]) + struct.pack(">III", 0, 0, 0) * 2
data = b"DIRC" + struct.pack(">II", 2, 0) + b"link" + struct.pack(">I", len(body)) + body
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
END""",
    "gitlink-shape": "shape .git/logs/refs/heads/x ../../../../../sub; mkdir sub; echo 'gitdir: "
    "../.git/logs/refs/heads/x' > sub/.git; gitlink sub",
    "gitlink-objects": "shape .git/objects/aa ../../../sub; mkdir sub; echo 'gitdir: "
    "../.git/objects/aa' > sub/.git; gitlink sub",
    "gitlink-refs": "shape .git/refs/heads/a ../../../../sub; mkdir sub; echo 'gitdir: "
    "../.git/refs/heads/a' > sub/.git; gitlink sub",
    "gitlink-lfs": "shape .git/lfs/tmp/a ../../../../sub; mkdir sub; echo 'gitdir: "
    "../.git/lfs/tmp/a' > sub/.git; gitlink sub",
    "gitlink-plain": "mkdir sub; shape sub/.git; gitlink sub",
    "gitlink-link": "shape away; mkdir sub; ln -s ../away sub/.git; gitlink sub",
    "gitlink-onto-link": "mkdir real; shape real/.git; ln -s real sub; gitlink sub",
    "gitlink-committed": """mkdir sub; shape sub/.git; commit_tree '160000 commit %s\\tsub\\n100644 blob %s\\tg\\n' $(git rev-parse HEAD) $ID""",
    "gitlink-nul": "mkdir sub; shape hidden ../sub; printf 'gitdir: ../hidden\\0junk\\n' > "
    "sub/.git; gitlink sub",
    "gitlink-cr": "mkdir sub; shape hidden ../sub; printf 'gitdir: ../hidden\\r\\r\\n' > sub/.git; "
    "gitlink sub",
    "gitlink-space": "mkdir sub; shape 'hidden ' ../sub; printf 'gitdir: ../hidden \\n' > "
    "sub/.git; gitlink sub",
    "gitlink-two-lines": "mkdir sub; shape $'hidden\\nx' ../sub; printf 'gitdir: ../hidden\\nx\\n' "
    "> sub/.git; gitlink sub",
    "gitlink-dangling": "mkdir sub; echo 'gitdir: ../later' > sub/.git; gitlink sub",
    "promisor": """git config remote.p.url $URL; git config remote.p.promisor true; git config extensions.partialClone p
        rm -f .git/objects/${ID:0:2}/${ID:2}; mkindex 2 .git/index g""",
    "commondir": "shape away; echo ../away > .git/commondir",
    "commondir-link": "shape away; echo ../away > c; ln -s ../c .git/commondir",
    "commondir-worktree": """git worktree add -q wt; I=$(basename $(git -C wt rev-parse --git-dir)); shape away
        echo ../../../away > .git/worktrees/$I/commondir""",
    "old-worktree-commondir": "shape away; echo ../../../away > .git/worktrees/old/commondir",
    "old-worktree-gitdir": "echo $V/.git > .git/worktrees/old/gitdir",
    "old-worktree-gitdir-in": "mkdir inner; echo $R/inner/.git > .git/worktrees/old/gitdir",
    "old-worktree-config": "evil > .git/worktrees/old/config; evil > "
    ".git/worktrees/old/config.worktree; hook .git/worktrees/old/hooks",
    "old-worktree-rebase": "rebase .git/worktrees/old/rebase-merge; echo \"x touch $MARK\" > "
    ".git/worktrees/old/rebase-merge/git-rebase-todo",
    "new-worktree-repair": "mkdir -p .git/worktrees/w; echo $V/.git > .git/worktrees/w/gitdir; "
    "echo ../.. > .git/worktrees/w/commondir; cp .git/HEAD .git/worktrees/w",
    "new-worktree-then-out": """git worktree add -q wt; sleep 2.5; echo $V/.git > .git/worktrees/wt/gitdir""",
    "new-worktree-nul": "git worktree add -q wt; printf '%s/.git\\0%s\\n' $V $R/wt/.git > "
    ".git/worktrees/wt/gitdir",
    "new-worktree-link": "git worktree add -q wt; rm -rf wt; ln -s $V wt",
    "new-worktree-then-link": "git worktree add -q wt; sleep 2.5; rm -rf wt; ln -s $V wt",
    "new-worktree-under-link": "git worktree add -q a/wt; sleep 2.5; mv a b; ln -s $V a",
    "modules-out": """mkdir -p sub; git init -q --separate-git-dir .git/modules/sub sub; git config -f .git/modules/sub/config core.worktree $V""",
    "modules-nested": """mkdir -p sub; git init -q --separate-git-dir .git/modules/a/modules/b sub; evil ../../../../../sub > .git/modules/a/modules/b/config""",
    "modules-half": "mkdir -p .git/modules/x; hook .git/modules/x/hooks; evil > "
    ".git/modules/x/config",
    "modules-dotdot": "printf '[submodule \"../x\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > "
    ".gitmodules; git add .gitmodules; shape sub",
    "modules-dotdot-commit": "printf '[submodule \"../x\"]\\n\\tpath = sub\\n\\turl = -u./x\\n' > "
    ".gitmodules; git add .gitmodules; git commit -qm m",
    "modules-dotdot-live": "printf '[submodule \"../x\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > "
    ".gitmodules; git add .gitmodules; sleep 1.5; git stash -q; sleep 1.5; git branch more stash",
    "modules-hooks-name": """printf '[submodule "a/hooks"]\\n\\tpath = s\\n\\turl = ./f\\n[submodule "a"]\\n\\tpath = t\\n\\turl = ./f\\n' > .gitmodules
        git add .gitmodules; gitlink s; gitlink t; mkdir -p .git/modules/a/hooks; hook .git/modules/a/hooks""",
    "modules-update-command": """printf '[submodule "s"]\\n\\tpath = s\\n\\turl = ./f\\n\\tupdate = !touch %s\\n' $MARK > .gitmodules
        git add .gitmodules; gitlink s; git config submodule.s.update "!touch $MARK"; git config submodule.s.url ./f""",
    "modules-url": """printf '[submodule "s"]\\n\\tpath = s\\n\\turl = ext::touch %s\\n' $MARK > .gitmodules; git add .gitmodules; gitlink s
        git config submodule.s.url "ext::touch $MARK"; git config protocol.ext.allow always""",
    "config-cr": "printf '[core]\\rfsmonitor=touch %s;false\\n' $MARK >> .git/config",
    "config-nul": "printf '[branch \"a\\0\"]\\n\\tremote = x\\n[core]\\n\\tfsmonitor = touch "
    "%s\\n' $MARK >> .git/config",
    "config-swallow": "printf '[user]\\n\\tname = a\\\\\\n[core]\\n\\tfsmonitor = touch "
    "%s\\n[core]\\n\\tfsmonitor = touch %s\\n' $MARK $MARK >> .git/config",
    "config-one-line": "printf '[user][core]fsmonitor=touch %s;false\\n' $MARK >> .git/config",
    "config-bom": "{ printf '\\xef\\xbb\\xbf'; cat .git/config; evil ../..; } > c; cat c > "
    ".git/config",
    "config-comment": "printf '# [\\n[core] ; x\\n fsmonitor = \"touch %s\" # y\\n' $MARK >> "
    ".git/config",
    "config-include": "evil ../.. > .git/evil; printf '[include]\\n\\tpath = evil\\n[includeIf "
    "\"onbranch:main\"]\\n\\tpath = evil\\n' >> .git/config",
    "config-case": "printf '[CORE]\\n\\tFsMonitor = \"touch %s\"\\n[Core]\\n\\tHOOKSPATH = "
    "hooks2\\n' $MARK >> .git/config; hook hooks2",
    "config-worktree": "git config extensions.worktreeConfig true; evil ../.. > "
    ".git/config.worktree",
    "config-link": "mv .git/config c; evil >> c; ln -s ../c .git/config",
    "config-programs": """for k in core.sshCommand core.pager core.editor core.askPass core.gitProxy sequence.editor pager.log credential.helper \\
        diff.external gpg.program remote.origin.uploadpack interactive.diffFilter core.alternateRefsCommand; do
        git config $k "touch $MARK"; done; git config alias.st "!touch $MARK"; git config filter.x.clean "touch $MARK"
        git config filter.x.smudge "touch $MARK"; echo '* filter=x' > .gitattributes; git config commit.gpgSign true""",
    "config-attributes": "echo '* filter=x diff=x merge=x' > .git/info/attributes; git config "
    "filter.x.process \"touch $MARK\"",
    "config-branch-url": "git config branch.main.remote $URL; git config branch.main.merge "
    "refs/heads/main",
    "config-branch-two": "git config --add branch.main.remote $URL; git config --add "
    "branch.main.remote .; git config branch.main.merge refs/heads/side",
    "config-new-remote": "git config remote.evil.url $URL; git config remote.evil.fetch "
    "'+refs/heads/*:refs/remotes/evil/*'",
    "config-remote-named-url": "git config \"remote.$URL.fetch\" "
    "'+refs/heads/*:refs/remotes/evil/*'",
    "config-remote-named-only": "git config \"remote.$URL.prune\" true; git config "
    "\"remote.$URL.tagopt\" --tags",
    "config-remote-group": "git config remotes.default \"$URL\"; git config remotes.all \"$URL\"",
    "config-push-url": "git config remote.pushDefault $URL; git config branch.main.pushRemote $URL",
    "config-instead": "git config url.$URL.insteadOf ./; git config url.$URL.pushInsteadOf ./",
    "config-vcs": "git config remote.origin.vcs \"touch $MARK\"; git config remote.origin.url "
    "ext::x; git config protocol.allow always",
    "config-worktree-out": "git config core.worktree $V",
    "config-bare": "git config core.bare true; git config core.worktree $V",
    "config-huge": "{ cat .git/config; for i in $(seq 60000); do echo \"[branch \\\"b$i\\\"]\"; "
    "printf '\\tremote = .\\n'; done; } > c; cat c > .git/config",
    "rebase-exec": "rebase .git/rebase-merge; echo \"exec touch $MARK\" > "
    ".git/rebase-merge/git-rebase-todo",
    "rebase-x-tab": "rebase .git/rebase-merge; printf 'noop\\nx\\ttouch %s\\n' $MARK > "
    ".git/rebase-merge/git-rebase-todo",
    "rebase-cr": "rebase .git/rebase-merge; printf 'noop\\rx touch %s\\n' $MARK > "
    ".git/rebase-merge/git-rebase-todo",
    "rebase-strategy": """rebase .git/rebase-merge; printf 'pick %s x\\n' $(git rev-parse side) > .git/rebase-merge/git-rebase-todo
        echo "/../../../f" > .git/rebase-merge/strategy; echo "--x=$MARK" > .git/rebase-merge/strategy_opts""",
    "rebase-sign": "rebase .git/rebase-merge; echo noop > .git/rebase-merge/git-rebase-todo; echo "
    "\"-S\" > .git/rebase-merge/gpg_sign_opt; git config gpg.program \"touch $MARK\"",
    "rebase-update-refs": "rebase .git/rebase-merge; echo noop > "
    ".git/rebase-merge/git-rebase-todo; printf '../../config\\n%s\\n%s\\n' $(git rev-parse HEAD) "
    "$(git rev-parse HEAD) > .git/rebase-merge/update-refs",
    "rebase-head-name": "rebase .git/rebase-merge; echo noop > .git/rebase-merge/git-rebase-todo; "
    "echo ../../config > .git/rebase-merge/head-name",
    "rebase-author": "rebase .git/rebase-merge; echo noop > .git/rebase-merge/git-rebase-todo; "
    "echo \"GIT_AUTHOR_NAME='a'; touch $MARK\" > .git/rebase-merge/author-script",
    "rebase-link": "mkdir r; rebase r/x; echo \"x touch $MARK\" > r/x/git-rebase-todo; ln -s "
    "../r/x .git/rebase-merge",
    "rebase-apply": "mkdir .git/rebase-apply; echo 1 > .git/rebase-apply/next; echo 1 > "
    ".git/rebase-apply/last; echo \"--directory=../../\" > .git/rebase-apply/apply-opt; mkindex 2 "
    ".git/rebase-apply/patch-merge-index .git/hooks/post-checkout",
    "sequencer-exec": "mkdir .git/sequencer; echo \"exec touch $MARK\" > .git/sequencer/todo; git "
    "rev-parse HEAD > .git/sequencer/head; git rev-parse side > .git/CHERRY_PICK_HEAD",
    "bisect-run": "git bisect start; echo \"touch $MARK\" > .git/BISECT_RUN; echo '; touch x' > "
    ".git/BISECT_NAMES; echo '../../x' > .git/BISECT_START",
    "branches-file": "mkdir -p .git/branches .git/remotes; echo $URL > .git/branches/origin; "
    "printf 'URL: %s\\nPull: refs/heads/main\\n' $URL > .git/remotes/origin",
    "refs-option": "H=$(git rev-parse HEAD); for n in --upload-pack=x -x --exec=touch; do echo $H "
    "> .git/refs/heads/$n; done; printf '%s refs/heads/--output=%s\\n' $H x >> .git/packed-refs",
    "refs-dotdot": "printf '# pack-refs with: peeled fully-peeled sorted \\n%s refs/../config\\n%s "
    "refs/heads/../../x\\n' $(git rev-parse HEAD) $(git rev-parse HEAD) > .git/packed-refs",
    "refs-link": "ln -s ../../config .git/refs/heads/l; ln -s $V/file .git/refs/heads/v; rm -rf "
    ".git/refs/tags; ln -s $V .git/refs/tags",
    "refs-junk": "printf '%s junk\\n' $(git rev-parse HEAD) > .git/refs/heads/j; printf '%s\\r\\n' "
    "$(git rev-parse HEAD) > .git/refs/heads/k; printf '%s\\0\\n' $(git rev-parse HEAD) > "
    ".git/refs/heads/l",
    "refs-fifo": "mkfifo .git/refs/heads/fifo .git/logs/fifo .git/MERGE_MSG "
    ".git/logs/refs/heads/x; mkfifo .git/packed-refs",
    "refs-replace": "mkdir -p .git/refs/replace; echo $ID > .git/refs/replace/$(git rev-parse "
    "HEAD:f)",
    "refs-symbolic": "echo 'ref: refs/../../../config' > .git/refs/heads/s; echo 'ref: ../x' > "
    ".git/HEAD",
    "refs-loop": "echo 'ref: refs/heads/b' > .git/refs/heads/a; echo 'ref: refs/heads/a' > "
    ".git/refs/heads/b; echo 'ref: refs/heads/a' > .git/HEAD",
    "refs-missing": "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > .git/refs/heads/main; echo "
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb > .git/HEAD",
    "refs-conflict": "H=$(git rev-parse HEAD); rm -f .git/refs/heads/side; mkdir -p "
    ".git/refs/heads/side; echo $H > .git/refs/heads/side/x",
    "refs-gone": "rm -rf .git/refs .git/packed-refs .git/HEAD .git/logs; mkdir .git/refs",
    "refs-gone-all": "rm -rf .git/* 2>/dev/null; sleep 2",
    "refs-only-gone": "rm -rf .git/refs .git/packed-refs",
    "index-missing": "ID=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa mkindex 2 .git/index f g",
    "objects-one-bad": """printf 'bad' | git hash-object -w --stdin --literally -t bogus 2>/dev/null; git commit -q --allow-empty -m good
        T=$(printf '100755 blob %s\\t.git\\n' $ID | git mktree 2>/dev/null); git update-ref refs/heads/bad $(git commit-tree -m x ${T:-$ID})""",
    "reflog-bad": "mkdir -p .git/logs/refs/heads; printf 'x y z\\n' > .git/logs/HEAD; ln -sf "
    "$V/file .git/logs/refs/heads/main; printf '\\0' > .git/logs/refs/stash",
    "reflog-mark": "H=$(git rev-parse HEAD); for i in $(seq 300); do printf '%s %s a <a> 1 "
    "+0000\\tward-import\\n' $H $H; done >> .git/logs/HEAD",
    "alternates": "printf '%s\\n/etc\\n' $V > .git/objects/info/alternates; echo $URL > "
    ".git/objects/info/http-alternates",
    "objects-forged": "B=$(git rev-parse HEAD:f); mkdir -p .git/objects/${B:0:2}; cp "
    ".git/objects/${ID:0:2}/${ID:2} .git/objects/${B:0:2}/${B:2}; git commit -q --allow-empty -m x",
    "objects-idx": "git commit -q --allow-empty -m x; git repack -adq; for f in "
    ".git/objects/pack/*.idx; do chmod u+w $f; printf 'XXXX' | dd of=$f bs=1 seek=1100 "
    "conv=notrunc 2>/dev/null; done; printf x > .git/objects/pack/multi-pack-index",
    "objects-graph": "git commit-graph write --reachable; f=.git/objects/info/commit-graph; chmod "
    "u+w $f; printf XXXXXXXX | dd of=$f bs=1 seek=1200 conv=notrunc 2>/dev/null",
    "objects-tree-git": """git config core.protectHFS false; T=$(printf '100755 blob %s\\tpost-checkout\\n' $ID | git mktree); T=$(printf '040000 tree %s\\thooks\\n' $T | git mktree)
        printf '040000 tree %s\\t.git\\n' $T | git mktree --missing > t; git update-ref refs/heads/side $(git commit-tree -m x $(cat t))""",
    "objects-tree-dotdot": """python3 - $ID <<'END'
import hashlib, os, sys, zlib
def put(kind, body):
    data = kind + b" %d\\0" % len(body) + body
    name = hashlib.sha1(data).hexdigest()
    os.makedirs(f".git/objects/{name[:2]}", exist_ok=True)
    open(f".git/objects/{name[:2]}/{name[2:]}", "wb").write(zlib.compress(data))
    return name
tree = put(b"tree", b"100755 ../outside\\0" + bytes.fromhex(sys.argv[1]) + b"40000 .GIT\\0" + bytes.fromhex(sys.argv[1]))
commit = put(b"commit", b"tree %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\n\\nx\\n" % tree.encode())
open(".git/refs/heads/side", "w").write(commit + "\\n")
END""",
    "objects-bomb": """python3 - <<'END'
import hashlib, os, zlib
data = b"blob 200000000\\0" + bytes(200000000)
name = hashlib.sha1(data).hexdigest()
os.makedirs(f".git/objects/{name[:2]}", exist_ok=True)
open(f".git/objects/{name[:2]}/{name[2:]}", "wb").write(zlib.compress(data, 9) + b"tail")
END""",
    "objects-link": "rm -rf .git/objects/pack; ln -s $V .git/objects/pack; ln -s $V/file "
    ".git/objects/aa; mkfifo .git/objects/bb",
    "huge-file": "truncate -s 3G .git/MERGE_MSG; truncate -s 3G .git/logs/HEAD; truncate -s 3G "
    ".git/refs/heads/huge; truncate -s 3G .git/packed-refs",
    "hard-link": "echo x > y; ln y .git/hooks-y; ln .git/config .git/MERGE_MSG; chmod u+s "
    ".git/HEAD; ln .git/HEAD .git/ORIG_HEAD",
    "set-id": "chmod 6755 .git/config .git/index .git/HEAD; cp /bin/sh .git/sh; chmod 6755 .git/sh "
    ".git/hooks",
    "deep": "d=.git/refs/heads; for i in $(seq 120); do d=$d/dddddddddddddddddddddddddddddd; mkdir "
    "$d || break; done; git rev-parse HEAD > $d/x",
    "very-deep": """cd .git/refs/heads; python3 -c "
import os
for i in range(3000): os.mkdir('d'); os.chdir('d')" """,
    "hooks": "hook .git/hooks; hook .git/HOOKS",
    "hooks-sample": "hook .git/hooks; mv .git/hooks/post-checkout .git/hooks/evil.sample; ln -s "
    "evil.sample .git/hooks/post-checkout",
    "hooks-link": "hook away; rm -rf .git/hooks; ln -s ../away .git/hooks",
    "rerere": "mkdir -p .git/rr-cache/$(git rev-parse HEAD); echo x > .git/rr-cache/$(git "
    "rev-parse HEAD)/postimage; echo x > .git/MERGE_RR",
    "grafts": "git rev-parse HEAD > .git/info/grafts; git rev-parse HEAD > .git/shallow",
    "git-removed": "rm -rf .git/* 2>/dev/null; shape .git ..",
    "locks": "for f in index HEAD config packed-refs refs/heads/main refs/heads/side logs/HEAD; do "
    ": > .git/$f.lock; done; echo x >> f; git -c core.useReplaceRefs=0 hash-object -w f",
    "shape-in-view": "shape .git/x ..; shape .git/refs/x ..; shape .git/info/x ..; shape "
    ".git/worktrees/x ..; shape .git/modules/x ..; shape .git/x.lock ..; shape .git/.tmp-1 ..",
    "terminal": r"""printf '[remote "\\e[31mX\\e]0;t\\a$(touch x)"]\n\turl = http://x/`id`\n' > c; printf "$(cat c)" >> .git/config
        n=$(printf 'a\033[31mb\a'); mkdir ".git/$n"; echo x > ".git/$n/c"; git rev-parse HEAD > ".git/refs/heads/x$n" """,
}

# ---- born in the run ----
BORN = {
    "plain": "mkdir n; shape n/.git ..",
    "init-config": "git init -q n; evil ../.. >> n/.git/config; hook n/.git/hooks",
    "init-late": "git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a); hook "
    "n/.git/hooks; git -C n config core.fsmonitor \"touch $MARK\"",
    "upper": "mkdir n; shape n/.GIT ..; shape m ..; mv m n/.Git",
    "bare": "git init -q --bare n; evil .. > n/config; hook n/hooks",
    "bare-docs": "shape docs/a/b ..",
    "bare-head-link": "shape n ..; rm n/HEAD; ln -s refs/heads/none n/HEAD",
    "bare-objects-link": "shape n ..; mv n/objects o; ln -s ../o n/objects",
    "bare-refs-link": "shape n ..; mv n/refs o; ln -s ../o n/refs",
    "bare-objects-file": "shape n ..; rmdir n/objects; : > n/objects",
    "bare-commondir": "shape c ..; mkdir n; cp c/HEAD n; echo ../c > n/commondir; rm -rf c/HEAD",
    "file": "shape away ../n; mkdir n; echo 'gitdir: ../away' > n/.git",
    "file-absolute": "shape away ../n; mkdir n; echo \"gitdir: $R/away\" > n/.git",
    "file-into-old": "shape .git/logs/x ../../../n; mkdir n; echo 'gitdir: ../.git/logs/x' "
    "> n/.git",
    "file-nul": "shape away ../n; mkdir n; printf 'gitdir: ../away\\0junk' > n/.git",
    "file-no-newline": "shape away ../n; mkdir n; printf 'gitdir: ../away' > n/.git",
    "file-dots": "shape away ../n; mkdir n; printf 'gitdir: .././n/..//away/\\n' > n/.git",
    "file-through-link": "shape away/x ../../n; mkdir n; ln -s away l; echo 'gitdir: ../l/x' "
    "> n/.git",
    "link": "shape away ../n; mkdir n; ln -s ../away n/.git",
    "link-chain": "shape away ../n; mkdir n; ln -s ../b n/.git; ln -s c b; ln -s away c",
    "link-to-file": "shape away ../n; mkdir n; echo \"gitdir: $R/away\" > g; ln -s ../g n/.git",
    "link-out": "mkdir n; ln -s $V n/.git",
    "fifo": "mkdir n m; mkfifo n/.git; mkdir m/.git; mkfifo m/.git/HEAD; mkdir m/.git/objects "
    "m/.git/refs",
    "fifo-ref": "git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a); mkfifo "
    "n/.git/refs/heads/f n/.git/MERGE_MSG n/.git/logs/f",
    "lfs-tmp": "git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a); shape "
    "n/.git/lfs/tmp/x ../..; shape n/.git/lfs/cache/x ..; shape n/.git/lfs/logs/x ..; shape "
    "n/.git/lfs/incomplete ..",
    "lock-shape": "git init -q n; shape n/.git/a.lock ..; shape n/.git/.tmp-x ..; shape "
    "n/.git/objects/tmp_x ..; mkdir -p n/.git/refs/heads/x.lock; shape "
    "n/.git/refs/heads/x.lock/y ..",
    "logs-shape": r"""git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a); d=n/.git/logs/refs/heads/x; H=$(git -C n rev-parse HEAD)
        mkdir -p $d/objects $d/refs $d/hooks; printf '%s %s a <a> 1 +0000\tx\n' $H $H > $d/HEAD
        for h in reference-transaction post-checkout post-index-change; do
        printf '%s %s a; touch %s; <a> 1 +0000\t;touch %s\n' $H $H $MARK $MARK > $d/hooks/$h; chmod +x $d/hooks/$h; done""",
    "refs-shape": "git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a); "
    "d=n/.git/refs/heads/x; mkdir -p $d/objects $d/refs; cp n/.git/HEAD $d/HEAD; evil > $d/config",
    "worktree-out": """git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a; git worktree add -q ../w); echo $V/.git > n/.git/worktrees/w/gitdir""",
    "worktree-rebase": """git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a; git worktree add -q ../w; rebase .git/worktrees/w/rebase-merge
        echo "exec touch $MARK" > .git/worktrees/w/rebase-merge/git-rebase-todo)""",
    "worktree-commondir": """git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a; git worktree add -q ../w); shape away; echo $R/away > n/.git/worktrees/w/commondir""",
    "modules-worktree": """git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a; git init -q --separate-git-dir .git/modules/s s; git config -f .git/modules/s/config core.worktree $V
        cd s; GIT_WORK_TREE=. git add ../a 2>/dev/null; mkdir -p x; echo x > x/y; GIT_WORK_TREE=. git --git-dir ../.git/modules/s add x; GIT_WORK_TREE=. git --git-dir ../.git/modules/s commit -qm x)""",
    "modules-hooks": "git init -q n; (cd n; echo 1 > a; git add a; git commit -qm a; git init -q "
    "--separate-git-dir .git/modules/s s; hook .git/modules/s/hooks; evil ../../../s > "
    ".git/modules/s/config)",
    "modules-deep": "git init -q n; mkdir -p n/.git/modules/a/modules/b/modules/c; shape "
    "n/.git/modules/a/modules/b/modules/c ../../../../../../..",
    "index": "git init -q n; cd n; ID=$(printf '#!/bin/sh\\ntouch %s\\n' $MARK | git hash-object "
    "-w --stdin) mkindex 2 .git/index .git/hooks/post-checkout ../out-$N",
    "index-v4": "git init -q n; cd n; ID=$(printf '#!/bin/sh\\ntouch %s\\n' $MARK | git "
    "hash-object -w --stdin) mkindex 4 .git/index .gitx .git/hooks/post-checkout",
    "split": "git init -q n; cd n; echo 1 > a; git add a; git commit -qm a; git update-index "
    "--split-index; S=$(ls .git/sharedindex.*); chmod u+w $S; ID=$(git hash-object -w a) mkindex 2 "
    "$S .git/hooks/post-checkout",
    "alternates": "git init -q n; echo $V > n/.git/objects/info/alternates; echo $URL > "
    "n/.git/objects/info/http-alternates",
    "promisor": """git init -q n; cd n; echo 1 > a; git add a; git commit -qm a; rm -f .git/objects/d0/*; git config remote.o.url $URL; git config remote.o.promisor true
        git config extensions.partialClone o; git config core.repositoryFormatVersion 1""",
    "include": "git init -q n; evil ../.. > n/x; git -C n config include.path ../x; git -C n "
    "config includeIf.gitdir:/.path ../x",
    "config-cr": "git init -q n; printf '[core]\\rfsmonitor=touch %s;false\\n' $MARK >> "
    "n/.git/config",
    "config-nul": "git init -q n; printf '[user]\\n\\tname = a\\0b\\n[core]\\n\\tfsmonitor = touch "
    "%s\\n' $MARK >> n/.git/config",
    "config-bom": "git init -q n; { printf '\\xef\\xbb\\xbf'; evil ../..; } > n/.git/config",
    "config-worktree": "git init -q n; git -C n config extensions.worktreeConfig true; evil ../.. "
    "> n/.git/config.worktree",
    "config-worktree-out": "git init -q n; git -C n config core.worktree $V; (cd n; echo x > x; "
    "GIT_WORK_TREE=. git add x)",
    "config-link": "git init -q n; mv n/.git/config n/c; evil ../.. >> n/c; ln -s ../c "
    "n/.git/config",
    "config-remote-named-url": "git init -q n; git -C n config \"remote.$URL.fetch\" "
    "'+refs/heads/*:refs/remotes/e/*'",
    "rebase": "git init -q n; cd n; echo 1 > a; git add a; git commit -qm a; rebase "
    ".git/rebase-merge; echo \"exec touch $MARK\" > .git/rebase-merge/git-rebase-todo",
    "branches": "git init -q n; mkdir -p n/.git/branches n/.git/remotes; echo $URL > "
    "n/.git/branches/origin; printf 'URL: %s\\n' $URL > n/.git/remotes/origin",
    "link-into-git": "mkdir -p .git/x/.vscode; echo '{}' > .git/x/.vscode/tasks.json; echo \"touch "
    "$MARK\" > .git/x/.envrc; ln -s .git/x d",
    "nested-twice": "git init -q n; git init -q n/m; git init -q n/m/.git/o; evil ../.. > "
    "n/m/.git/o/.git/config; hook n/m/.git/o/.git/hooks",
    "hidden-in-node": "mkdir -p node_modules/p; shape node_modules/p/.git ..; mkdir -p target/x "
    "vendor/y; shape target/x ..; shape vendor/y/.git ..",
    "odd-names": "mkdir -p $'a\\nb' ' ' '-n' ; shape $'a\\nb/.git' ..; shape ' /.git' ..; shape -- "
    "2>/dev/null; shape ./-n/.git ..",
    "unreadable": "mkdir -p n/m; shape n/m/.git ..; chmod 0 n/m; chmod 0 n",
    "hard-link": "git init -q n; evil > c; rm n/.git/config; ln c n/.git/config; git init -q m; ln "
    "m/.git/config mc",
    "submodule-url": """git init -q n; cd n; printf '[submodule "s"]\\n\\tpath = s\\n\\turl = ext::touch %s\\n' $MARK > .gitmodules; git config protocol.ext.allow always
        git config submodule.s.url "ext::touch $MARK"; git config submodule.s.active true; echo 1 > a; git add -A; git commit -qm a; gitlink s; git commit -qm s""",
}

# ---- a second run completes what a first one prepared ----
TWO = {
    "dangling-file": ("mkdir n; echo 'gitdir: ../later' > n/.git; git update-index --add "
                      "--cacheinfo 160000,$(git rev-parse HEAD),n", "shape later ../n"),
    "dangling-link": ("mkdir n; ln -s ../later n/.git", "shape later ../n"),
    "shape-in-parts": ("mkdir -p n/objects n/refs; evil .. > n/config; hook n/hooks",
                       "echo 'ref: refs/heads/main' > n/HEAD"),
    "shape-in-parts-2": ("mkdir -p n/refs; echo 'ref: refs/heads/main' > n/HEAD; evil .. > "
                         "n/config", "mkdir n/objects"),
    "git-dir-in-parts": ("mkdir -p n/x; evil ../.. > n/x/config; hook n/x/hooks; mkdir n/x/objects "
                         "n/x/refs", "mv n/x n/.git; echo 'ref: refs/heads/main' > n/.git/HEAD"),
    "born-then-config": ("git init -q n", "evil ../.. >> n/.git/config; hook n/.git/hooks"),
    "born-then-commondir": ("git init -q n; mkdir away",
                            "shape away ..; echo ../../away > n/.git/commondir"),
    "born-then-index": ("git init -q n; cd n; echo 1 > a; git add a; git commit -qm a",
                        "cd n; ID=$(printf '#!/bin/sh\\ntouch %s\\n' $MARK | git hash-object -w "
                        "--stdin) mkindex 2 .git/index .git/hooks/post-checkout"),
    "link-swapped": ("mkdir -p good n; git init -q good/x; ln -s good l; echo 'gitdir: "
                     "../l/x/.git' > n/.git", "shape bad/x/.git ../../../n; rm l; ln -s bad l"),
    "worktree-then-out": ("git worktree add -q wt", "echo $V/.git > .git/worktrees/wt/gitdir"),
    "worktree-then-link": ("git worktree add -q wt", "rm -rf wt; ln -s $V wt"),
    "worktree-then-commondir": ("git worktree add -q wt",
                                "shape away ..; echo ../../../away > .git/worktrees/wt/commondir"),
    "gitlink-then-repo": ("mkdir n; gitlink n; git commit -qm link", "shape n/.git .."),
    "module-then-config": ("git -c protocol.file.allow=always submodule --quiet add ../src n; git "
                           "commit -qm s",
                           "evil ../../../n >> .git/modules/n/config; hook .git/modules/n/hooks"),
    "module-then-swap": ("git -c protocol.file.allow=always submodule --quiet add ../src n; git "
                         "commit -qm s", "shape away ../n; echo 'gitdir: ../away' > n/.git"),
    "module-then-link": ("git -c protocol.file.allow=always submodule --quiet add ../src n; git "
                         "commit -qm s", "rm -rf n; ln -s $V n"),
    "attributes-then-filter": ("echo '* filter=x' > .gitattributes; git add -A; git commit -qm x",
                               "git config filter.x.clean \"touch $MARK\"; git config "
                               "filter.x.smudge \"touch $MARK\""),
    "rebase-in-parts": ("rebase .git/rebase-merge; echo noop > .git/rebase-merge/git-rebase-todo",
                        "echo \"exec touch $MARK\" >> .git/rebase-merge/git-rebase-todo"),
    "remote-then-named": ("git config branch.main.remote .; git config branch.main.merge "
                          "refs/heads/side", "git config branch.main.remote $URL"),
}


class Field:
    """A workspace with a repository for each case, and what must stay as it is."""

    def __init__(self, t, cases):
        self.t, self.cases = t, cases
        self.listener = battery.Listener()
        t.defer(self.listener.close)
        self.marker, self.victim = t.fresh_dir("marker"), t.fresh_dir("victim")
        t.write(self.victim, {"file": "theirs\n", "dir/f": "theirs\n"})
        self.ws = t.workspace()
        template = self._template(t.fresh_dir("template"))
        t.run("bash", "-ec", 'cp -a "$0" src; git -C "$0" worktree add -q -b old "$0/old"; for n; '
              'do cp -a "$0" $n; cd $n\n'
              'echo "$PWD/old/.git" > .git/worktrees/old/gitdir; echo "gitdir: '
              '$PWD/.git/worktrees/old" > old/.git; cd ..; done',
              template, *cases, cwd=self.ws, timeout=60, check=True)
        self.old = {name: self.state(name) for name in cases}
        self.outside = battery.snapshot(self.victim)

    def _template(self, directory):
        t = self.t
        t.write(directory, {"f": "one\n"})
        t.run("bash", "-c",
              """set -e; git init -q -b main; git add f; git commit -qm one; git branch side; echo two > f; git commit -qam two
              git checkout -q side; echo three > f; git commit -qam three; git checkout -q main""",
              cwd=directory, env=WHO, check=True)
        return directory

    def path(self, name):
        """The repository of a case."""
        return os.path.join(self.ws, name)

    def state(self, name):
        """What no run may change."""
        git = os.path.join(self.path(name), ".git")
        hooks = os.path.join(git, "hooks")
        names = sorted(n for n in os.listdir(hooks)
                       if not n.endswith(".sample")) if os.path.isdir(hooks) else None
        return self.t.read(git, "config"), names, os.path.exists(os.path.join(git, "commondir"))

    def script(self, scripts):
        """All cases in one script."""
        out = [PRELUDE, f"export URL=http://127.0.0.1:{self.listener.port}/x V='{self.victim}'"]
        for name, text in scripts.items():
            out.append(f"(cd '{self.path(name)}' && export N={name} R=\"$PWD\" "
                       f"MARK='{self.marker}/{name}'\n"
                       "export ID=$(printf '#!/bin/sh\\ntouch %s\\n' \"$MARK\" | git hash-object "
                       f"-w --stdin)\n{text}\n) >/dev/null 2>&1")
        return "\n".join(out + ["true"])

    def run(self, scripts, *options):
        """One run of ward."""
        self.t.write(self.ws, {"plan.sh": self.script(scripts)})
        r = self.t.ward("run", *PASSED, *options, "--", "bash", "plan.sh", cwd=self.ws, env=WHO,
                        timeout=120)
        self.t.check(r.rc == 0, f"exit {r.rc}: {r.err[-600:]}")
        for text in (r.err, r.out):
            self.t.check("\033" not in text and "\a" not in text,
                         "the agent's text reaches the terminal")
        return r

    def fsck(self, when):
        """The host's repositories, and the commits that were there at the start."""
        script = 'main=$1 side=$2; shift 2; for n; do cd "$n" && git fsck --no-dangling >/dev/null 2>x.err && git cat-file -e $main && ' \
                 'git cat-file -e $side || echo "$n: WHEN: the host\'s repository is damaged: $(tail -n2 x.err)"; rm -f x.err; cd ..; done'
        r = self.t.run("bash", "-c", script.replace("WHEN", when), "x", *self.commits(),
                       *self.cases, cwd=self.ws, env=WHO, timeout=100)
        return r.out.splitlines()

    def judge(self):
        """The battery, and what must hold behind it."""
        t, wrong = self.t, self.fsck("after the run")
        for name in self.cases:
            config, hooks, commondir = self.state(name)
            if (hooks, commondir) != self.old[name][1:]:
                wrong.append(f"{name}: hooks or commondir changed: {hooks} {commondir}")
            for key in ("fsmonitor", "hooksPath", "[include", "promisor", "pager", self.marker,
                        self.victim):
                if key in (config or ""):
                    wrong.append(f"{name}: {key} in the configuration")
        tops = {self.path(name) for name in self.cases}
        work = [battery.script(battery.COMMANDS, path) for path in sorted(tops)]
        work += [battery.script(battery.SHORT, path) for path in battery.places(self.ws)
                 if path not in tops]
        tool = t.fresh_dir("battery")
        t.write(tool, {"run": "\n".join(f"({w})" for w in work)})
        r = t.run("bash", os.path.join(tool, "run"), cwd=self.ws, env=dict(WHO, **battery.ENV),
                  timeout=250)
        wrong += [f"{name}: code of the sandbox's ran" for name in os.listdir(self.marker)]
        wrong += [line for line in r.out.splitlines() if "HANGS" in line]
        wrong += [f"{self.listener.calls} were calls"] if self.listener.calls else []
        if battery.snapshot(self.victim) != self.outside:
            wrong.append("the directory of somebody else changed: "
                         f"{sorted(battery.snapshot(self.victim))}")
        wrong += self.fsck("after the battery")
        t.check(not wrong, "; ".join(wrong))

    def commits(self):
        """The ids of main and side at the start."""
        return self.t.run("git", "rev-parse", "main", "side", cwd=os.path.join(self.ws, "src"),
                          check=True).out.split()


def part(t, cases, number, of):
    """Every of-th case; where the test is not named, root gets a quarter of them and the user
    another one, so that four turns try each case as both."""
    chosen = list(cases.items())[number::of]
    return dict(chosen if host.THOROUGH else chosen[(host.TURN + (t.person.pw_uid != 0)) % 4::4])


def attack(t, cases):
    """One run plants all."""
    field = Field(t, cases)
    field.run(cases)
    field.judge()


def attack_reviewed(t, cases):
    """The same by way of a review that is applied."""
    field = Field(t, cases)
    field.run(cases, "--review")
    t.ward("apply", cwd=field.ws, timeout=120)
    field.judge()


@by_turns
@needs("git")
@timeout(300)
def test_private_copy(t):
    attack(t, part(t, VIEW, 0, 3))


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_private_copy_second(t):
    attack(t, part(t, VIEW, 1, 3))


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_private_copy_third(t):
    attack(t, part(t, VIEW, 2, 3))


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_born_in_the_run(t):
    attack(t, part(t, BORN, 0, 2))


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_born_second(t):
    attack(t, part(t, BORN, 1, 2))


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_two_runs(t):
    """What was harmless after the first run, or could not be seen, is judged again."""
    field = Field(t, TWO)
    field.run({name: one for name, (one, _) in TWO.items()})
    field.run({name: two for name, (_, two) in TWO.items()})
    field.judge()


@by_turns
@needs("git")
@timeout(120)
def test_many_repositories(t):
    """A workspace full of repositories, which an agent can make in a moment, does not stop the next
    run: those behind the bound are read-only inside."""
    ws = t.workspace()
    r = t.ward("run", "--", "bash", "-c", "for i in $(seq 90); do git init -q r$i; done", cwd=ws,
               timeout=60)
    t.equal(r.rc, 0, r.err[-300:])
    r = t.ward("run", "--", "bash", "-c",
               "git -C r1 config user.name x && git -C r90 status && echo works", cwd=ws,
               timeout=60)
    t.check(r.rc == 0 and "works" in r.out, f"the next run: {r.err[-300:]}")
    said = [line for line in r.err.splitlines() if "repositories of the workspace" in line]
    t.check(len(said) == 1 and len(r.err.splitlines()) < 10,
            f"one plain line says so: {r.err[-600:]}")


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(120)
def test_many_refs(t):
    """Ten thousand refs end with the run, not minutes later: the import costs a few times what git
    takes to make them. A few bad ones among them keep back nothing but themselves."""
    ws = t.git_repo()
    script = """h=$(git rev-parse HEAD); date +%s%N > begin; for i in $(seq 10000); do echo create refs/heads/b$i $h; done | git update-ref --stdin
    date +%s%N > made; b=$(git rev-parse HEAD:); e=$(printf '100644 blob %s\\tx\\n' $(echo x | git hash-object --stdin) | git mktree --missing)
    c=$(git commit-tree -m c $e); date +%s%N > end
    for i in $(seq 1 20); do echo $b > .git/refs/heads/bad$i; echo ${i}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | cut -c1-40 > .git/refs/heads/worse$i
    echo $c > .git/refs/tags/bad; mkdir -p .git/refs/heads/b7; done; rm .git/refs/heads/b77; mkdir .git/refs/heads/b77
    echo $h > .git/refs/heads/b77/x"""
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=100)
    returned = time.time()
    stamp = {name: int(t.read(ws, name)) / 1e9 for name in ("begin", "made", "end")}
    t.equal(r.rc, 0, r.err[-300:])
    refs = t.run("git", "for-each-ref", "--format=%(refname)", cwd=ws).out.splitlines()
    t.check(len([n for n in refs if n.startswith("refs/heads/b")]) >= 9998,
            f"{len(refs)} refs arrived; {r.err[-300:]}")
    t.check("refs/heads/b77/x" in refs and "refs/heads/b77" not in refs,
            "a branch in place of another one")
    t.check(not [n for n in refs if "bad" in n or "worse" in n], "what leads nowhere")
    took, own = returned - stamp["end"], stamp["made"] - stamp["begin"]
    t.check(took < 10 + 6 * own, f"the end took {took:.1f} s, git itself {own:.1f} s")
    t.run("git", "fsck", cwd=ws, check=True)


@by_turns
@needs("git")
@native_only("the same readers as test_private_copy; the time is git's own")
@timeout(300)
def test_review(t):
    attack_reviewed(t,
                    {**part(t, VIEW, 0, 6),
                     **{f"born-{n}": s for n, s in part(t, BORN, 0, 4).items()}})


def make_places(t, ws):
    """A workspace whose repositories know work trees that the user removed: path of the directory
    that is gone -> (where, how) git would write there."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com",
           "-c", "protocol.file.allow=always"]

    def run(*words, cwd=ws):
        t.run(*git, *words, cwd=cwd, check=True)

    inner, outer = t.fresh_dir("inner"), t.fresh_dir("outer")
    for where in (inner, outer, ws, os.path.join(ws, "nested"), os.path.join(ws, "deep/er")):
        os.makedirs(where, exist_ok=True)
        run("init", "-q", cwd=where)
        run("commit", "-q", "--allow-empty", "-m", "x", cwd=where)
    run("submodule", "--quiet", "add", inner, "lib/inner", cwd=outer)
    run("commit", "-q", "-m", "inner", cwd=outer)
    run("submodule", "--quiet", "add", outer, "sub")
    run("submodule", "--quiet", "update", "--init", "--recursive")
    run("commit", "-q", "-m", "sub")
    repair, update = ["worktree", "repair"], ["submodule", "update", "--init", "--force"]
    places = {"own": (".", "own", repair), "above": (".", "above/wt", repair),
              "beside": ("nested", "../beside", repair), "nested/in": ("nested", "in", repair),
              "far": ("deep/er", "../../far/wt", repair), "of-sub": ("sub", "../of-sub", repair),
              "of-inner": ("sub/lib/inner", "../../../of-inner", repair)}
    for where, at, _ in places.values():
        run("worktree", "add", "-q", at, cwd=os.path.join(ws, where))
    places["sub"] = (".", "sub", update)
    for link in places:
        if link != "sub":
            t.run("rm", "-rf", link, cwd=ws, check=True)
    return git, places


@by_turns
@needs("git")
@timeout(120)
def test_link_in_place_of_a_removed_worktree(t):
    """git still knows a work tree whose directory the user removed: of the repository, of a nested
    one, of a submodule, or a submodule's own. A run puts a link there, at the place itself or above
    it. git would write behind the link."""
    victim, ws = t.fresh_dir("victim"), t.workspace()
    t.write(victim, {"wt/theirs": "x"})
    before = battery.snapshot(victim)
    git, places = make_places(t, ws)
    for link, (where, _, words) in places.items():
        if link == "sub":
            t.run("rm", "-rf", link, cwd=ws, check=True)
        r = t.ward("run", "--", "ln", "-s", victim, link, cwd=ws)
        t.equal(r.rc, 0, r.err)
        t.contains(r.err, f"quarantined: {link}: a link in place of a git work tree")
        cwd = os.path.join(ws, where)
        if os.path.isdir(cwd):
            t.run(*git, *words, cwd=cwd)
        t.equal(battery.snapshot(victim), before, f"the directory behind the link {link}")


@needs("git")
def test_born_repository_with_a_worktree_behind_a_link(t):
    """A repository that the run makes knows a work tree in the workspace, in whose place the run
    puts a link: git forgets that work tree."""
    for link, at in (("wt", "../wt"), ("above", "../above/wt")):
        victim, ws = t.fresh_dir("victim"), t.workspace()
        t.write(victim, {"wt/theirs": "x", "theirs": "x"})
        before = battery.snapshot(victim)
        git = "git -c user.name=a -c user.email=a@example.com"
        r = t.ward("run", "--", "sh", "-ec",
                   f"git init -q born; cd born; {git} commit -q --allow-empty -m x; "
                   f"git worktree add -q {at}; cd ..; rm -rf {link}; ln -s {victim} {link}",
                   cwd=ws)
        t.equal(r.rc, 0, r.err)
        t.contains(r.err, "names a work tree behind a link")
        t.run("git", "worktree", "repair", cwd=os.path.join(ws, "born"))
        t.equal(battery.snapshot(victim), before, f"the directory behind the link {link}")

