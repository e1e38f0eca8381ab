#!/usr/bin/python3
"""Has real git do ordinary work, and asks ward's readers about everything that it left.

Usage: git_forms.py GIT-WALK. After each operation all of the git directory is judged (src/rules):
nothing may be refused, entries of the index must be those that `git ls-files` prints, and settings
those of `git config`. States on which git would act to an agent's ends are at the end, and in
tests/unit/git_rules.c.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WALK = os.path.abspath(sys.argv[1])
passed = 0
problems = []
ENV = {
    **os.environ,
    'GIT_CONFIG_GLOBAL': '/dev/null',
    'GIT_CONFIG_SYSTEM': '/dev/null',
    'GIT_EDITOR': 'true',
    'GIT_TERMINAL_PROMPT': '0',
    'GIT_AUTHOR_NAME': "O'Hara",
    'GIT_AUTHOR_EMAIL': 'o@example.org',
    'GIT_COMMITTER_NAME': 'C',
    'GIT_COMMITTER_EMAIL': 'c@example.org',
    'HOME': '/nonexistent',
    'LC_ALL': 'C',
    'GIT_ALLOW_PROTOCOL': 'file',
}


def git(where, *words, ok=True, **more):
    done = subprocess.run(
        ['git', *words],
        cwd=where,
        env={**ENV, **more.pop('env', {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if ok and done.returncode != 0:
        sys.exit(f'git {words} in {where}: {done.stdout.decode(errors="replace")}')
    return done.stdout


def write(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def walk(*words):
    done = subprocess.run(
        [WALK, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f'git-walk {words}: {done.stderr.decode(errors="replace")}')
    return done


def judge(where):
    """What is said of a git directory: {path: (verdict, why)}, without what is simply admitted."""
    done = walk(where)
    if done.returncode:
        sys.exit(done.stderr.decode(errors='replace'))
    return {
        line.split('\t')[1]: (line.split('\t')[0], line.split('\t')[2])
        for line in done.stdout.decode(errors='surrogateescape').splitlines()
    }


def check(name, good, what=''):
    global passed
    if good:
        passed += 1
    else:
        problems.append(f'{name}: {what}')


def same_index(name, work, git_dir, hash_bytes):
    index = pathlib.Path(git_dir, 'index')
    if not index.exists():
        return
    content, ours = index.read_bytes(), walk('--entries', index, hash_bytes)
    if b'link' in content or b'sdir' in content:  # git shows what they mean, not what they hold
        check(f'{name}: index', ours.returncode == 0, ours.stderr)
        return
    theirs = git(work, 'ls-files', '-s', '-z').replace(b'\0', b'\n')
    check(
        f'{name}: index',
        ours.returncode == 0 and ours.stdout == theirs,
        (ours.stderr, ours.stdout[:400], theirs[:400]),
    )


def same_config(name, work, git_dir):
    ours = walk('--config', pathlib.Path(git_dir, 'config'))
    theirs = git(work, 'config', '-z', '--list', '--file', str(pathlib.Path(git_dir, 'config')))
    check(
        f'{name}: config',
        ours.returncode == 0 and ours.stdout == theirs,
        (ours.stderr, ours.stdout, theirs),
    )


def good(name, work, git_dir=None, expect=()):
    """Nothing is refused or dropped but what `expect` names; git reads index and config alike."""
    git_dir = git_dir or pathlib.Path(work, '.git')
    said = judge(git_dir)
    refused = {
        path: why
        for path, (verdict, why) in said.items()
        if verdict in ('REFUSE', 'DROP') and path not in expect
    }
    check(name, not refused, refused)
    for path in expect:
        check(f'{name}: {path}', path in said and said[path][0] == 'REFUSE', said.get(path))
    if pathlib.Path(work, '.git').exists():
        same_index(name, work, git_dir, 32 if 'sha256' in name else 20)
    same_config(name, work, git_dir)
    return said


def commit(work, name, text, message=None):
    write(pathlib.Path(work, name), text)
    git(work, 'add', '-A')
    git(work, 'commit', '-q', '-m', message or f'add {name}')


def new(top, name, *words):
    work = pathlib.Path(top, name)
    git(top, 'init', '-q', '-b', 'main', *words, str(work))
    for number in range(4):
        commit(work, f'file{number}', f'{number}\n' * 5)
    commit(work, 'dir/sub/deep', 'x\n')
    return work


def fork_branches(work):
    """Two branches that conflict in file0."""
    git(work, 'checkout', '-q', '-b', 'side')
    commit(work, 'file0', 'side\n')
    commit(work, 'more', 'more\n')
    git(work, 'checkout', '-q', 'main')
    commit(work, 'file0', 'main\n')


def ordinary(top, *words):
    tag = ' '.join(words)
    work = new(top, 'ordinary', *words)
    good(f'{tag} commit', work)
    os.symlink('file0', work / 'link')
    write(work / 'program', '#!/bin/sh\n')
    os.chmod(work / 'program', 0o755)
    commit(work, 'deep/er/name with blanks', 'x')
    git(work, 'tag', '-a', 'v1', '-m', 'tag')
    git(work, 'tag', 'light')
    git(work, 'branch', 'feature/one')
    git(work, 'branch', 'tmp_branch')
    git(work, 'notes', 'add', '-m', 'note')
    good(f'{tag} tags, notes, branches', work)
    write(work / 'file1', 'stashed')
    write(work / 'untracked', 'u')
    git(work, 'stash', '-u')
    good(f'{tag} stash', work)
    git(work, 'stash', 'pop')
    write(work / 'intended', 'x')
    git(work, 'add', '-N', 'intended')
    good(f'{tag} intent to add', work)
    git(work, 'update-index', '--assume-unchanged', 'file2')
    git(work, 'update-index', '--skip-worktree', 'file3')
    check(f'{tag} hidden', good(f'{tag} hidden entries', work).get('index', ('',))[0] == 'REPORT')
    git(work, 'update-index', '--no-assume-unchanged', 'file2')
    git(work, 'update-index', '--no-skip-worktree', 'file3')
    git(work, 'add', '-A')
    git(work, 'commit', '-q', '-m', 'rest')
    git(work, 'reset', '-q', '--hard', 'HEAD~1')
    git(work, 'branch', '-m', 'feature/one', 'feature/two')
    git(work, 'branch', '-D', 'feature/two')
    git(work, 'checkout', '-q', '--detach')
    good(f'{tag} detached', work)
    git(work, 'checkout', '-q', 'main')
    git(work, 'pack-refs', '--all')
    good(f'{tag} pack-refs', work)
    git(work, 'gc', '-q')
    said = good(f'{tag} gc', work)
    check(
        f'{tag} derived',
        any(v == 'DERIVED' and p.endswith('.idx') for p, (v, _) in said.items()),
        said,
    )
    git(work, 'commit-graph', 'write', '--split', '--reachable')
    git(work, 'multi-pack-index', 'write')
    git(work, 'repack', '-adq', '--write-bitmap-index')
    git(work, 'update-server-info')
    git(work, 'maintenance', 'run')
    good(f'{tag} graphs, midx, bitmaps', work)
    git(work, 'fsck', '--lost-found')
    good(f'{tag} lost-found', work)
    git(work, 'branch', 'described')
    write(
        pathlib.Path(top, 'editor'),
        '#!/bin/sh\nprintf "two\\nlines; # with \\"quotes\\" \\\\\\n" > "$1"\n',
    )
    os.chmod(pathlib.Path(top, 'editor'), 0o755)
    git(
        work,
        'branch',
        '--edit-description',
        'described',
        env={'GIT_EDITOR': str(pathlib.Path(top, 'editor'))},
    )
    for key, value in {
        'user.name': ' edge ',
        'user.email': 'a#b;c@d',
        'core.autocrlf': 'input',
        'color.ui': 'auto',
        'pull.rebase': 'true',
        'push.default': 'simple',
        'gc.auto': '0',
        'advice.detachedHead': 'false',
        'core.commentChar': ';',
    }.items():
        git(work, 'config', key, value)
    good(f'{tag} settings', work)
    shutil.rmtree(work)


def conflicts(top, *words):
    tag = ' '.join(words)
    work = new(top, 'conflicts', *words)
    fork_branches(work)
    git(work, 'merge', 'side', ok=False)
    check(f'{tag} merge reported', good(f'{tag} merge stopped', work)['MERGE_HEAD'][0] == 'REPORT')
    write(work / 'file0', 'both\n')
    git(work, 'add', 'file0')
    good(f'{tag} merge resolved', work)  # the index has REUC now
    git(work, 'commit', '-q', '-m', 'merged')
    git(work, 'reset', '-q', '--hard', 'HEAD~1')
    git(work, 'merge', '--squash', 'side', ok=False)
    good(f'{tag} squash', work)
    git(work, 'reset', '-q', '--hard')
    git(work, 'cherry-pick', 'side~1', 'side', ok=False)
    good(f'{tag} cherry-pick stopped', work)
    git(work, 'cherry-pick', '--abort')
    git(
        work,
        'cherry-pick',
        '-x',
        '-s',
        '-X',
        'patience',
        '--strategy',
        'recursive',
        'side~1',
        'side',
        ok=False,
    )
    good(f'{tag} cherry-pick with options stopped', work)
    git(work, 'cherry-pick', '--abort')
    git(work, 'checkout', '-q', 'side')
    commit(work, 'file0', 'again\n')
    git(work, 'revert', '--no-edit', 'HEAD~2', 'HEAD', ok=False)
    good(f'{tag} revert stopped', work)
    git(work, 'revert', '--abort', ok=False)
    git(work, 'reset', '-q', '--hard')
    for backend in ('--merge', '--apply'):
        git(work, 'rebase', backend, 'main', ok=False)
        good(f'{tag} rebase {backend} stopped', work)
        git(work, 'rebase', '--abort')
    write(work / 'dirty', 'x')
    git(work, 'add', 'dirty')
    git(
        work,
        'rebase',
        '--autostash',
        '--signoff',
        '-X',
        'theirs',
        '--exec',
        'true',
        'main',
        ok=False,
    )
    if pathlib.Path(work, '.git/rebase-merge').exists():
        git(work, 'rebase', '--abort')
    git(work, 'reset', '-q', '--hard')
    interactive(tag, work)
    mail(tag, work)
    bisect(tag, work)
    shutil.rmtree(work)


def interactive(tag, work):
    git(work, 'checkout', '-q', '-b', 'inter')
    for number in range(5):
        commit(
            work,
            f'inter{number}',
            f'{number}\n',
            f'{"fixup! " if number == 2 else ""}inter {1 if number == 2 else number}',
        )
    git(work, 'branch', 'stacked', 'HEAD~2')
    for name, script, words in [
        ('edit', '2s/pick/edit/', []),
        ('break', '2s/^/break\\n/', []),
        ('reword', '1s/pick/reword/;3s/pick/edit/', []),
        ('squash', '2s/pick/squash/;3s/pick/fixup/;4s/pick/edit/', []),
        ('fixup -C', '2s/pick/fixup -C/;3s/pick/edit/', []),
        ('drop', '2s/pick/drop/;3s/pick/e/', []),
        ('update-refs', '2s/pick/edit/', ['--update-refs']),
        ('autosquash', '1s/pick/edit/', ['--autosquash']),
        ('root', '2s/pick/edit/', ['--root']),
        ('merges', '0,/pick/s/pick/edit/', ['--rebase-merges']),
        ('strategy', '2s/pick/edit/', ['-X', 'ours', '-s', 'recursive']),
    ]:
        base = [] if '--root' in words else ['HEAD~5']
        git(
            work,
            'rebase',
            '-q',
            '-i',
            *words,
            *base,
            ok=False,
            env={'GIT_SEQUENCE_EDITOR': f"sed -i -e '{script}'"},
        )
        stopped = pathlib.Path(work, '.git/rebase-merge').exists()
        check(f'{tag} rebase -i {name} stops', stopped)
        good(f'{tag} rebase -i {name}', work)
        if stopped:
            git(work, 'rebase', '--abort')
    git(
        work,
        'rebase',
        '-q',
        '-i',
        'HEAD~2',
        ok=False,
        env={'GIT_SEQUENCE_EDITOR': "sed -i -e '1s/^/break\\nexec true\\n/'"},
    )
    good(
        f'{tag} rebase -i with exec',
        work,
        expect=('rebase-merge/git-rebase-todo', 'rebase-merge/git-rebase-todo.backup')[:1],
    )
    git(work, 'rebase', '--abort')


def mail(tag, work):
    git(work, 'checkout', '-q', '-B', 'mail', 'main')
    git(work, 'format-patch', '-q', '-2', 'side', '-o', str(work.parent / 'patches'))
    patches = sorted(map(str, (work.parent / 'patches').iterdir()))
    git(work, 'am', '-q', '-3', '--whitespace=fix', '--signoff', *patches, ok=False)
    check(f'{tag} am stops', pathlib.Path(work, '.git/rebase-apply').exists())
    good(f'{tag} am stopped', work)
    git(work, 'am', '--abort')
    git(work, 'am', '-q', '--keep-cr', '-p1', *patches, ok=False)
    good(f'{tag} am stopped again', work)
    git(work, 'am', '--abort')
    shutil.rmtree(work.parent / 'patches')


def bisect(tag, work):
    git(work, 'checkout', '-q', 'inter')
    git(work, 'bisect', 'start', 'HEAD', 'HEAD~5')
    good(f'{tag} bisect', work)
    git(work, 'bisect', 'good')
    good(f'{tag} bisect good', work)
    git(work, 'bisect', 'reset')
    git(
        work,
        'bisect',
        'start',
        '--term-old',
        'fast',
        '--term-new',
        'slow',
        '--first-parent',
        '--no-checkout',
        'HEAD',
        'HEAD~5',
        '--',
        'inter1',
    )
    good(f'{tag} bisect terms', work)
    git(work, 'bisect', 'reset')


def worktrees(top, *words):
    tag = ' '.join(words)
    work = new(top, 'trees', *words)
    git(work, 'worktree', 'add', '-q', '-b', 'wt', '../linked')
    git(work, 'worktree', 'add', '-q', '--detach', '../second tree')
    linked = pathlib.Path(top, 'linked')
    commit(linked, 'inlinked', 'x')
    good(f'{tag} worktree add', work)
    git(work, 'worktree', 'lock', '--reason', 'because', '../linked')
    git(work, 'worktree', 'move', '../second tree', '../third')
    git(linked, 'config', 'extensions.worktreeConfig', 'true')
    git(linked, 'sparse-checkout', 'set', 'dir')
    good(f'{tag} worktree lock, move, sparse', work)
    git(linked, 'sparse-checkout', 'disable')
    git(linked, 'checkout', '-q', '-b', 'other')
    commit(linked, 'file0', 'other\n')
    git(linked, 'checkout', '-q', 'wt')
    commit(linked, 'file0', 'wt\n')
    git(linked, 'rebase', 'other', ok=False)
    good(f'{tag} rebase in a worktree', work)
    git(linked, 'rebase', '--abort')
    git(linked, 'bisect', 'start', 'HEAD', 'HEAD~2')
    good(f'{tag} bisect in a worktree', work)
    git(linked, 'bisect', 'reset')
    git(work, 'worktree', 'remove', '../third')
    git(work, 'worktree', 'prune')
    good(f'{tag} worktree remove', work)
    for name in ('trees', 'linked'):
        shutil.rmtree(pathlib.Path(top, name))


def submodules(top, *words):
    tag = ' '.join(words)
    inner = new(top, 'inner', *words)
    nested = new(top, 'nested', *words)
    work = new(top, 'super', *words)
    allow = ['-c', 'protocol.file.allow=always']
    git(inner, *allow, 'submodule', 'add', '-q', str(nested), 'deep/nested')
    git(inner, 'commit', '-q', '-m', 'nested')
    git(work, *allow, 'submodule', 'add', '-q', str(inner), 'vendor/inner')
    git(work, *allow, 'submodule', 'add', '-q', str(nested), 'config')
    git(work, *allow, 'submodule', 'add', '-q', '--name', 'lib/config', str(nested), 'other')
    git(work, 'commit', '-q', '-m', 'submodules')
    git(work, *allow, 'submodule', 'update', '-q', '--init', '--recursive')
    git(work, *allow, 'submodule', 'update', '-q', '--remote')
    commit(work / 'vendor/inner', 'new', 'x')
    git(work, 'submodule', 'absorbgitdirs')
    said = good(f'{tag} submodules', work)
    check(
        f'{tag} nested submodules are there',
        (work / '.git/modules/vendor/inner/modules/deep/nested/HEAD').exists(),
    )
    check(
        f'{tag} addresses',
        said['config'][0] == 'CONFIRM' and said['modules/vendor/inner/config'][0] == 'CONFIRM',
        said,
    )
    git(work / 'vendor/inner', 'gc', '-q')
    git(work, 'worktree', 'add', '-q', '../superlinked')
    git(pathlib.Path(top, 'superlinked'), *allow, 'submodule', 'update', '-q', '--init')
    good(f'{tag} submodules in a worktree', work)
    git(work, 'submodule', 'deinit', '-q', '-f', 'vendor/inner')
    good(f'{tag} submodule deinit', work)
    for name in ('inner', 'nested', 'super', 'superlinked'):
        shutil.rmtree(pathlib.Path(top, name))


def clones(top, *words):
    tag = ' '.join(words)
    origin = new(top, 'origin', *words)
    git(origin, 'branch', 'feature/x')
    git(origin, 'config', 'receive.denyCurrentBranch', 'ignore')
    origin_refused = judge(origin / '.git')
    check(
        f'{tag} receive.* is refused',
        origin_refused.get('config', ('',))[0] == 'REFUSE',
        origin_refused,
    )
    git(top, 'clone', '-q', 'origin', 'local')  # hard links
    said = good(f'{tag} clone', pathlib.Path(top, 'local'))
    check(f'{tag} hard links', any(v == 'COPY' for v, _ in said.values()), said)
    work = pathlib.Path(top, 'clone')
    git(top, 'clone', '-q', '--no-local', 'origin', 'clone')
    good(f'{tag} clone --no-local', work)
    git(
        top,
        'clone',
        '-q',
        '--no-local',
        '--depth',
        '1',
        '--single-branch',
        '--no-tags',
        f'file://{origin}',
        'shallow',
    )
    said = good(
        f'{tag} clone --depth', pathlib.Path(top, 'shallow'), expect=('config',)
    )  # file:// is no address that is let out
    check(f'{tag} shallow', said['shallow'][0] == 'REPORT', said)
    git(top, 'clone', '-q', '--bare', 'origin', 'bare.git')
    good(f'{tag} clone --bare', pathlib.Path(top, 'bare.git'), pathlib.Path(top, 'bare.git'))
    git(top, 'clone', '-q', '--mirror', 'origin', 'mirror.git')
    good(f'{tag} clone --mirror', pathlib.Path(top, 'mirror.git'), pathlib.Path(top, 'mirror.git'))
    git(work, 'checkout', '-q', '-b', 'topic')
    commit(work, 'topic', 'x')
    git(work, 'push', '-q', '-u', 'origin', 'topic')
    git(work, 'remote', 'add', 'other', 'https://example.org/x.git')
    git(work, 'remote', 'add', '-t', 'main', '-m', 'main', 'ssh', 'git@example.org:x/y.git')
    git(work, 'remote', 'set-url', '--push', 'other', 'ssh://git@example.org:2222/x.git')
    git(work, 'remote', 'rename', 'other', 'renamed')
    git(work, 'branch', '--set-upstream-to', 'main', 'topic')
    good(f'{tag} remotes', work)
    commit(origin, 'upstream', 'x')
    git(work, 'fetch', '-q', '--all', ok=False)
    git(work, 'checkout', '-q', 'main')
    git(work, 'pull', '-q', '--no-rebase', 'origin', 'main')
    git(work, 'remote', 'prune', 'origin')
    good(f'{tag} fetch, pull', work)
    for name in ('origin', 'local', 'clone', 'shallow', 'bare.git', 'mirror.git'):
        shutil.rmtree(pathlib.Path(top, name))


def indexes(top, *words):
    tag = ' '.join(words)
    work = new(top, 'indexes', *words)
    for number in range(300):
        write(work / f'many/{number % 7}/name{number:04}', f'{number}\n')
    git(work, 'add', '-A')
    git(work, 'commit', '-q', '-m', 'many')
    for version in ('4', '3', '2'):
        git(work, 'update-index', '--index-version', version)
        good(f'{tag} index version {version}', work)
    git(
        work, '-c', 'index.threads=8', 'update-index', '--index-version', '4', '--force-write-index'
    )
    good(f'{tag} index with blocks for threads', work)
    git(work, 'config', 'core.untrackedCache', 'true')
    write(work / 'fresh/one', 'x')
    write(work / '.gitignore', '*.o\n')
    write(work / 'fresh/x.o', 'x')
    git(work, 'status')
    git(work, 'status')
    index = (work / '.git/index').read_bytes()
    check(f'{tag} UNTR is there', b'UNTR' in index)
    good(f'{tag} untracked cache', work)
    git(work, 'update-index', '--no-untracked-cache')
    git(work, 'config', '--unset', 'core.untrackedCache')
    git(work, 'update-index', '--split-index')
    write(work / 'many/0/name0000', 'changed')
    write(work / 'many/0/new', 'new')
    git(work, 'add', '-A')
    git(work, 'rm', '-q', '--cached', 'many/1/name0001')
    check(f'{tag} split index is there', list((work / '.git').glob('sharedindex.*')))
    good(f'{tag} split index', work)
    git(work, 'update-index', '--no-split-index')
    git(work, 'add', '-A')
    git(work, 'commit', '-q', '-m', 'more')
    git(work, 'sparse-checkout', 'set', '--cone', '--sparse-index', 'many/1')
    check(f'{tag} sparse index is there', b'sdir' in (work / '.git/index').read_bytes())
    good(f'{tag} sparse index', work)
    git(work, 'sparse-checkout', 'disable')
    good(f'{tag} sparse index disabled', work)
    git(work, 'update-index', '--fsmonitor', ok=False)
    git(work, 'rm', '-q', '-r', '.')
    good(f'{tag} empty index', work)
    git(work, 'reset', '-q', '--hard')
    shutil.rmtree(work)


def notes(top, *words):
    tag = ' '.join(words)
    work = new(top, 'notes', *words)
    git(work, 'notes', 'add', '-m', 'one')
    git(work, 'notes', '--ref', 'two', 'add', '-m', 'two')
    git(work, 'notes', 'merge', 'two', ok=False)
    check(f'{tag} notes merge stops', (work / '.git/NOTES_MERGE_PARTIAL').exists())
    good(f'{tag} notes merge', work)
    shutil.rmtree(work)


def lfs(top):
    if not shutil.which('git-lfs'):
        print('[  SKIPPED ] lfs')  # git-lfs is not installed
        return
    work = new(top, 'lfs')
    git(work, 'lfs', 'install', '--local', '--skip-smudge', ok=False)
    git(work, 'lfs', 'track', '*.bin')
    commit(work, 'a.bin', 'binary' * 100)
    said = judge(work / '.git')
    hooks = [f'hooks/{name}' for name in ('pre-push', 'post-checkout', 'post-commit', 'post-merge')]
    refused = sorted(path for path, (verdict, _) in said.items() if verdict == 'REFUSE')
    check('lfs', refused == sorted(hooks + ['config']), said)  # programs, and the filter's
    shutil.rmtree(work)


def hostile(top):
    """States that real git acts on, and that must be refused by name or by form."""
    work = new(top, 'hostile')
    blob = git(work, 'hash-object', '-w', '--stdin').decode().strip()
    keep = pathlib.Path(top, 'kept')
    shutil.copytree(work, keep, symlinks=True)
    head = git(work, 'rev-parse', 'HEAD').decode().strip()

    def refused(name, path):
        said = judge(work / '.git')
        check(name, said.get(path, ('',))[0] == 'REFUSE', {path: said.get(path)})
        shutil.rmtree(work)
        shutil.copytree(keep, work, symlinks=True)

    for version in (2, 4):
        write_index(work / '.git/index', ['plain', 'plain.too', 'zzz'], blob, version)
        check(f'index {version} made by hand', 'index' not in judge(work / '.git'))
    for number, path in enumerate(
        [
            '.git/hooks/x',
            '../x',
            '/x',
            'a/.git/x',
            '.GIT/x',
            'GIT~1/x',
            '.g\u200cit/x',
            '.git /x',
            '.git./x',
            '.git:stream/x',
            'a//b',
            './a',
            'a/./b',
            '.gi\u00adt/x',
            'x\\.git\\y',
        ]
    ):
        for version in (2, 4):
            write_index(work / '.git/index', [path, 'zzz'], blob, version)
            refused(f'index {version} {number}', 'index')
    files = [
        ('HEAD', 'ref: \t refs/heads/main\n'),
        ('HEAD', f'{head}junk\n'),
        ('HEAD', 'ref: refs/remotes/x\n'),
        ('refs/heads/x', f'{head} junk\n'),
        ('refs/heads/x', f'{head}\r\n'),
        ('refs/heads/x', f'{head}\0\n'),
        ('refs/heads/x', head),
        ('refs/heads/--upload-pack=x', f'{head}\n'),
        ('refs/heads/x', 'ref: ../../x\n'),
        ('refs/replace/' + head, f'{head}\n'),
        ('packed-refs', f'{head} ../x\n'),
        ('commondir', '../..\n'),
        ('objects/info/alternates', '/x\n'),
        ('hooks/post-checkout', '#!/bin/sh\n'),
        ('info/attributes', '* filter=x\n'),
        ('info/grafts', f'{head}\n'),
        ('branches/origin', 'https://example.org\n'),
        ('remotes/origin', 'URL: https://example.org\n'),
        ('rr-cache/x/preimage', 'x'),
        ('rebase-merge/git-rebase-todo', 'x touch /tmp/x\n'),
        ('rebase-merge/git-rebase-todo', ' \texec touch /tmp/x\n'),
        ('rebase-merge/git-rebase-todo', f'pick {head}\nexec\tx\n'),
        ('rebase-merge/done', 'bogus x\n'),
        ('rebase-merge/strategy', 'evil\n'),
        ('rebase-merge/strategy_opts', ' --exec=x\n'),
        ('rebase-merge/gpg_sign_opt', '--x\n'),
        ('rebase-merge/author-script', "GIT_AUTHOR_NAME='x'; touch x\n"),
        ('worktrees/id/git-rebase-todo', 'x\n'),
        ('worktrees/id/rebase-merge/git-rebase-todo', 'x cmd\n'),
        ('worktrees/id/commondir', '/x\n'),
        ('worktrees/id/gitdir', '../x/.git\n'),
        ('worktrees/id/gitdir', '/x\0/.git\n'),
        ('worktrees/id/config', '[core]\n\tfsmonitor = x\n'),
        ('modules/a/hooks/pre-commit', 'x'),
        ('modules/a/config', '[core]\n\tfsmonitor = x\n'),
        ('modules/a/modules/b/config', '[core]\n\tfsmonitor = x\n'),
        ('modules/../x', 'x'),
        ('modules/.git/HEAD', f'{head}\n'),
        ('logs/refs/heads/x', 'not a reflog\n'),
        ('logs/HEAD', f'{head} {head} a <b> 1 +0000 \n'),
        ('MERGE_HEAD', 'x\n'),
        ('FETCH_HEAD', f'{head}\n'),
        ('BISECT_START', '--x\n'),
        ('sequencer/opts', '[options]\n\texec = x\n'),
        ('config.worktree', '[core]\n\tfsmonitor = x\n'),
        ('objects/ab/' + 'c' * 38, 'not zlib'),
        ('unknown', 'x'),
        ('logs/refs/heads/x/config', 'x'),
    ]
    for number, (path, text) in enumerate(files):
        if '..' in path:
            continue
        target = work / '.git' / path
        if target.is_dir():
            shutil.rmtree(target)
        write(target, text)
        refused(f'hostile {path} {number}', path)
    for number, text in enumerate(CONFIGS):
        with open(work / '.git/config', 'ab') as config:
            config.write(text if isinstance(text, bytes) else text.encode())
        refused(f'hostile config {number} {text!r}', 'config')
    for path, make in [
        ('HEAD', lambda p: os.symlink('refs/x', p)),
        ('MERGE_MSG', os.mkfifo),
        ('refs/heads/fifo', os.mkfifo),
        ('logs/refs/heads/f', os.mkfifo),
        ('objects/pack', lambda p: os.symlink('/', p)),
        ('config', lambda p: os.link(keep / '.git/config', p)),
        ('modules', lambda p: os.symlink('/', p)),
    ]:
        target = work / '.git' / path
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        make(target)
        refused(f'type of {path}', path)
        if path == 'config':
            shutil.rmtree(keep)
            shutil.copytree(work, keep, symlinks=True)
    shutil.rmtree(work)


CONFIGS = [
    '[core]\rfsmonitor=x\n',
    '[core]\n\tfsmonitor = x\n',
    '[core "x\0"]\n\ta = b\n',
    '[core]\n\tbare = fal\\\nse\n',
    '[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n',
    '[include]\n\tpath = x\n',
    '[includeIf "onbranch:main"]\n\tpath = x\n',
    '[branch "main"]\n\tremote = https://x\n',
    '[branch "main"]\n\tremote = vendor\n',
    '[branch "main"]\n\tremote = ../x\n',
    '[remote "o"]\n\tpromisor = true\n',
    '[extensions]\n\tpartialClone = o\n',
    '[protocol]\n\tallow = always\n',
    '[remote "o"]\n\turl = ext::x\n',
    '[remote "o"]\n\turl = http://x/y\n',
    '[remote "o"]\n\turl = -x\n',
    '[remote "o"]\n\turl = ssh://-x/y\n',
    '[remote "o"]\n\turl = -x@h:y\n',
    '[remote "o"]\n\turl = file:///x\n',
    '[remote "-x"]\n\turl = https://x\n',
    '[core][core]fsmonitor=x\n',
    '[core]\n\tbare\n',
    '[core.x]\n\ty = z\n',
    '[core ""]\n\tbare = true\n',
    '[core] bare = true\n',
    '\n\ufeff[core]\n\tbare = true\n',
    '[core]\n\tbare = true # c\n',
    '[core]\n\tbare = tr"u"e\n',
    '[core]\r\n\tbare = true\r\n',
    '[url "x"]\n\tinsteadOf = y\n',
    '[alias]\n\tst = !x\n',
    '[filter "lfs"]\n\tclean = x\n',
    '[core]\n\tworktree = ../x\n',
    '[submodule "x"]\n\tupdate = !x\n',
    '[submodule "../x"]\n\turl = https://x\n',
    '[submodule "a/hooks"]\n\turl = https://x\n',
    '[http]\n\tproxy = x\n',
    '[core]\n\thooksPath = x\n',
    '[remote]\n\tpushDefault = x\n',
    '[commit]\n\tgpgSign = true\n',
    '[extensions]\n\trefStorage = reftable\n',
    '[core]\n\trepositoryformatversion = 2\n',
    '[core]\n\tcommentChar = p\n',
    '[credential]\n\thelper = x\n',
    '[diff "x"]\n\ttextconv = x\n',
    '[remote "o"]\n\tuploadpack = x\n',
]


def write_index(path, names, blob, version):
    """An index with any names, its checksum right."""
    import hashlib
    import struct

    out, before = b'DIRC' + struct.pack('>II', version, len(names)), b''
    for name in sorted(os.fsencode(n) for n in names):
        entry = (
            struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0)
            + bytes.fromhex(blob)
            + struct.pack('>H', min(len(name), 0xFFF))
        )
        if version == 4:
            assert len(before) < 128
            common = len(os.path.commonprefix([before, name]))
            entry += bytes([len(before) - common]) + name[common:] + b'\0'
        else:
            entry += name
            entry += b'\0' * (8 - len(entry) % 8)
        out, before = out + entry, name
    path.write_bytes(out + hashlib.sha1(out).digest())


def main():
    with tempfile.TemporaryDirectory(prefix='ward-git-') as top:
        for words in ((), ('--object-format=sha256',)):
            for part in (
                (ordinary, conflicts, indexes)
                if words
                else (ordinary, conflicts, worktrees, submodules, clones, indexes, notes)
            ):
                part(top, *words)
        lfs(top)
        hostile(top)
    for problem in problems:
        print(problem)
    print(f'{passed} passed, {len(problems)} failed')
    return 1 if problems else 0


sys.exit(main())
