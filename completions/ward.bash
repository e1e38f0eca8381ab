# Made by tools/gen_cli.py; do not edit. Completions of ward for bash.

_ward_options() {
	case $1 in
	run)
		options="--policy --profile --workspace --yes --chdir --ro --rw --review --apply-on-exit --continue --restore --allow --ask --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --detach --name --widen --tty --hints --notify --quiet --verbose --json --report --help -p -w -y -C -d -t -q -v -h"
		file="--policy -p --ro --rw --report"
		directory="--workspace -w --chdir -C"
		other="--profile --continue --restore --allow --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --name"
		;;
	agent)
		options="--policy --profile --workspace --yes --chdir --ro --rw --review --apply-on-exit --continue --restore --allow --ask --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --detach --name --widen --tty --hints --notify --quiet --verbose --json --report --help -p -w -y -C -d -t -q -v -h"
		file="--policy -p --ro --rw --report"
		directory="--workspace -w --chdir -C"
		other="--profile --continue --restore --allow --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --name"
		;;
	shell)
		options="--policy --profile --workspace --yes --chdir --ro --rw --review --apply-on-exit --continue --restore --allow --ask --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --detach --name --widen --tty --hints --notify --quiet --verbose --json --report --help -p -w -y -C -d -t -q -v -h"
		file="--policy -p --ro --rw --report"
		directory="--workspace -w --chdir -C"
		other="--profile --continue --restore --allow --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --name"
		;;
	init)
		options="--yes --full --force --json --help -y -f -h"
		file=""
		directory=""
		other=""
		;;
	learn)
		options="--workspace --chdir --ro --rw --allow --secret --ssh --service --publish --hide --cache --env --timeout --memory --set --add --output --merge --yes --force --expect --allow-public --mcp --name --keep --json --help -w -C -o -y -f -h"
		file="--ro --rw --output -o --merge"
		directory="--workspace -w --chdir -C"
		other="--allow --secret --ssh --service --publish --hide --cache --env --timeout --memory --set --add --expect --name"
		;;
	plan)
		options="--policy --profile --workspace --chdir --ro --rw --review --allow --ask --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --widen --hints --notify --verbose --full --json --help -p -w -C -v -h"
		file="--policy -p --ro --rw"
		directory="--workspace -w --chdir -C"
		other="--profile --allow --secret --ssh --service --publish --budget --hide --cache --env --timeout --memory --cpus --pids --disk --isolation --image --gpus --set --add --default"
		;;
	diff)
		options="--sarif --patch --stat --web --all --no-pager --who --trailer --list --block-on --scanner --no-look --exit-code --json --help -p -l -h"
		file=""
		directory=""
		other="--block-on --scanner"
		;;
	apply)
		options="--block-on --scanner --no-look --protected --force --patch --markers --dry-run --json --help -f -p -n -h"
		file=""
		directory=""
		other="--block-on --scanner"
		;;
	explain)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	ps)
		options="--all --quiet --json --help -a -q -h"
		file=""
		directory=""
		other=""
		;;
	top)
		options="--once --json --help -h"
		file=""
		directory=""
		other=""
		;;
	doctor)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	exec)
		options="--interactive --tty --forensic --env --chdir --json --help -i -t -C -h"
		file=""
		directory="--chdir -C"
		other="--env"
		;;
	attach)
		options="--exclusive --read-only --json --help -h"
		file=""
		directory=""
		other=""
		;;
	cp)
		options="--protected --json --help -h"
		file=""
		directory=""
		other=""
		;;
	wait)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	pause)
		options="--all --json --help -h"
		file=""
		directory=""
		other=""
		;;
	evidence)
		options="--output --verify --key --json --help -o -h"
		file="--output -o"
		directory=""
		other="--key"
		;;
	resume)
		options="--all --json --help -h"
		file=""
		directory=""
		other=""
		;;
	checkpoint)
		options="--quiet --stop --json --help -q -h"
		file=""
		directory=""
		other=""
		;;
	stop)
		options="--all --timeout --json --help -h"
		file=""
		directory=""
		other="--timeout"
		;;
	kill)
		options="--all --signal --json --help -s -h"
		file=""
		directory=""
		other="--signal -s"
		;;
	panic)
		options="--clear --dead-man --after --json --help -h"
		file="--dead-man"
		directory=""
		other="--after"
		;;
	quarantine)
		options="--json --all --to --help -h"
		file=""
		directory="--to"
		other=""
		;;
	discard)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	secret)
		options="--stdin --json --help -h"
		file=""
		directory=""
		other=""
		;;
	approve)
		options="--once --run --for --always --deny --group --watch --socket --webhook --key --yes --policy --json --help -y -p -h"
		file="--key --policy -p"
		directory=""
		other="--for --socket --webhook"
		;;
	net)
		options="--temporary --json --help -h"
		file=""
		directory=""
		other="--temporary"
		;;
	logs)
		options="--follow --tail --json --help -f -h"
		file=""
		directory=""
		other="--tail"
		;;
	stats)
		options="--no-stream --json --help -h"
		file=""
		directory=""
		other=""
		;;
	audit)
		options="--kind --action --host --since --until --follow --all --format --output --html --key --head --older --max-size --keep --dry-run --always --json --help -f -o -h"
		file="--output -o"
		directory=""
		other="--kind --action --host --since --until --format --key --head --older --max-size --keep"
		;;
	scan)
		options="--rules --pii --tracked --severity --allow --baseline --write-baseline --redact --sarif --quiet --json --help -q -h"
		file="--allow --baseline --write-baseline"
		directory=""
		other="--severity"
		;;
	check)
		options="--replay --all --json --tools --base --format --score --unused --days --write --help -h"
		file="--write"
		directory=""
		other="--base --format --days"
		;;
	watch)
		options="--all --json --help -h"
		file=""
		directory=""
		other=""
		;;
	trust)
		options="--yes --json --help -y -h"
		file=""
		directory=""
		other=""
		;;
	profile)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	policy)
		options="--policy --from-event --yes --dry-run --expect --secrets --json --help -p -y -n -h"
		file="--policy -p"
		directory=""
		other="--from-event --expect"
		;;
	tool)
		options="--json --file --agent --yes --output --mcp --openapi --help -f -y -o -h"
		file="--file -f --output -o --openapi"
		directory=""
		other="--agent"
		;;
	mcp)
		options="--policy --profile --workspace --chdir --ro --rw --review --allow --ask --secret --ssh --service --budget --hide --cache --env --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --widen --json --file --agent --project --name --yes --dry-run --call-timeout --session --http --token-file --approvals --help -p -w -C -f -y -n -h"
		file="--policy -p --ro --rw --file -f --token-file"
		directory="--workspace -w --chdir -C"
		other="--profile --allow --secret --ssh --service --budget --hide --cache --env --memory --cpus --pids --disk --isolation --image --gpus --set --add --default --agent --name --call-timeout --http --approvals"
		;;
	image)
		options="--name --max-size --max-files --quiet --json --help -q -h"
		file=""
		directory=""
		other="--name --max-size --max-files"
		;;
	vm)
		options="--from --image --memory --cpus --accel --network --quiet --json --help -q -h"
		file="--from"
		directory=""
		other="--image --memory --cpus --accel"
		;;
	wasm)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	recover)
		options="--help -h"
		file=""
		directory=""
		other=""
		;;
	volume)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	rm)
		options="--all --force --json --help -f -h"
		file=""
		directory=""
		other=""
		;;
	help)
		options="--help -h"
		file=""
		directory=""
		other=""
		;;
	version)
		options="--json --help -h"
		file=""
		directory=""
		other=""
		;;
	serve)
		options="--dev --listen --templates --state --max --quota --snapshot-quota --pool --warm --add-key --role --limits --tls-dir --tls-clients --rate --debug --help -h"
		file=""
		directory="--templates --state --tls-dir"
		other="--listen --max --quota --snapshot-quota --pool --warm --add-key --role --limits --rate"
		;;
	token)
		options="--state --owner --ttl --name --role --limits --json --help -h"
		file=""
		directory="--state"
		other="--owner --ttl --name --role --limits"
		;;
	*)
		options='' file='' directory='' other=''
		;;
	esac
}

# Where the command of a verb begins among the words, 0 when it has not begun.
_ward_command_at() {
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		case " $file $directory $other " in
		*" ${COMP_WORDS[i]} "*) ((i++)) && continue ;;
		esac
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)) && return ;;
		-* | =) ;;
		*) echo "$i" && return ;;
		esac
	done
	echo 0
}

_ward() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
	local options file directory other at
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "run agent shell init learn plan diff apply explain ps top doctor exec attach cp wait pause evidence resume checkpoint stop kill panic quarantine discard secret approve net logs stats audit scan check watch trust profile policy tool mcp image vm wasm recover volume rm help version serve token aider amp claude codex copilot cursor-agent gemini goose opencode --help --version" -- "$word")
		return
	fi
	if [[ $verb == agent ]] && ((COMP_CWORD == 2)) && [[ $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "ls set aider amp claude codex copilot cursor-agent gemini goose opencode" -- "$word")
		return
	fi
	_ward_options "$verb"
	case $verb in
	run|agent|shell|learn|plan|exec|tool)
		at=$(_ward_command_at)
		if [[ $verb == exec ]]; then	# the first word is a sandbox
			if ((at == COMP_CWORD || (at == 0 && COMP_CWORD > 1))) && [[ $word != -* ]]; then
				mapfile -t COMPREPLY < <(compgen -W "$(ward ps -q 2>/dev/null)" -- "$word")
				return
			fi
			((at > 0)) && ((at++))
		fi
		if ((at > 0)); then
			if declare -F _command_offset >/dev/null; then
				_command_offset "$at"
			elif ((at == COMP_CWORD)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$word")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$word")
			fi
			return
		fi
		;;
	esac
	case " $file " in *" $before "*) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;; esac
	case " $directory " in *" $before "*) mapfile -t COMPREPLY < <(compgen -d -- "$word") && return ;; esac
	if [[ $verb == checkpoint && ${COMP_WORDS[2]} == rm && $COMP_CWORD -gt 2 && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(ward checkpoint ls -q 2>/dev/null)" -- "$word")
		return
	fi
	case $before in
	--add)
		mapfile -t COMPREPLY < <(compgen -W "version= profile= extends= isolation= toolchains= image= oci.runtime= filesystem.workspace= filesystem.mode= filesystem.host_mounts= filesystem.hide= filesystem.protect= filesystem.ask= filesystem.caches= filesystem.home= filesystem.scratch= filesystem.programs= network.mode= network.egress_allowlist= network.ingress= network.host_services= network.connection_limit= network.connection_rate= network.receive_limit= network.send_limit= network.bandwidth_limit= network.request_rate= network.spend_limit= network.spend_warning= network.prices= network.unpriced= network.upstream_proxy= network.record= network.replay= process.syscalls= process.env= process.git_identity= process.user= process.terminal= process.nesting= process.commands= process.children= process.children_depth= resources.cpu_limit= resources.memory_limit= resources.pids_limit= resources.disk_limit= resources.inode_limit= resources.open_files= resources.output_limit= resources.timeout_seconds= resources.gpus= wasm.runtime= wasm.fuel= wasm.compile= credentials.mode= credentials.secret_scanning= credentials.scan_requests= credentials.scan_output= credentials.scan_workspace= credentials.scan_personal= credentials.leaks= credentials.grants= credentials.ssh= credentials.gpg= approvals.mode= approvals.timeout_seconds= approvals.never= approvals.proposals= approvals.on_timeout= watch.rules= watch.labels= canary.files= canary.hosts= canary.variables= canary.git_remotes= canary.do= audit.level= audit.journal= audit.on_full= audit.sinks= channels= tools= gvisor.platform= vm.accel= vm.memory= vm.cpus= require.isolation= require.limits= require.idmap= require.landlock=" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	--cache)
		mapfile -t COMPREPLY < <(compgen -W "pip uv npm yarn pnpm cargo go ccache maven gradle bundle deno bun" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	--isolation)
		mapfile -t COMPREPLY < <(compgen -W "native oci gvisor vm wasm" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	--profile)
		mapfile -t COMPREPLY < <(compgen -W "$(ward profile ls 2>/dev/null | cut -d ' ' -f 1)" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	--restore)
		mapfile -t COMPREPLY < <(compgen -W "$(ward checkpoint ls -q 2>/dev/null)" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	--set)
		mapfile -t COMPREPLY < <(compgen -W "version= profile= extends= isolation= toolchains= image= oci.runtime= filesystem.workspace= filesystem.mode= filesystem.host_mounts= filesystem.hide= filesystem.protect= filesystem.ask= filesystem.caches= filesystem.home= filesystem.scratch= filesystem.programs= network.mode= network.egress_allowlist= network.ingress= network.host_services= network.connection_limit= network.connection_rate= network.receive_limit= network.send_limit= network.bandwidth_limit= network.request_rate= network.spend_limit= network.spend_warning= network.prices= network.unpriced= network.upstream_proxy= network.record= network.replay= process.syscalls= process.env= process.git_identity= process.user= process.terminal= process.nesting= process.commands= process.children= process.children_depth= resources.cpu_limit= resources.memory_limit= resources.pids_limit= resources.disk_limit= resources.inode_limit= resources.open_files= resources.output_limit= resources.timeout_seconds= resources.gpus= wasm.runtime= wasm.fuel= wasm.compile= credentials.mode= credentials.secret_scanning= credentials.scan_requests= credentials.scan_output= credentials.scan_workspace= credentials.scan_personal= credentials.leaks= credentials.grants= credentials.ssh= credentials.gpg= approvals.mode= approvals.timeout_seconds= approvals.never= approvals.proposals= approvals.on_timeout= watch.rules= watch.labels= canary.files= canary.hosts= canary.variables= canary.git_remotes= canary.do= audit.level= audit.journal= audit.on_full= audit.sinks= channels= tools= gvisor.platform= vm.accel= vm.memory= vm.cpus= require.isolation= require.limits= require.idmap= require.landlock=" -- "$word")
		[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace
		return
		;;
	esac
	case " $other " in *" $before "*) return ;; esac
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
	elif [[ $verb == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "run agent shell init learn plan diff apply explain ps top doctor exec attach cp wait pause evidence resume checkpoint stop kill panic quarantine discard secret approve net logs stats audit scan check watch trust profile policy tool mcp image vm wasm recover volume rm help version serve token" -- "$word")
	elif [[ $verb == agent ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "set" -- "$word")
	elif [[ $verb == quarantine ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls show restore" -- "$word")
	elif [[ $verb == secret ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls grant revoke" -- "$word")
	elif [[ $verb == net ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "show allow deny" -- "$word")
	elif [[ $verb == audit ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "show report verify export metrics send ls prune seal key" -- "$word")
	elif [[ $verb == watch ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "suggest" -- "$word")
	elif [[ $verb == profile ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls show" -- "$word")
	elif [[ $verb == policy ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "add show" -- "$word")
	elif [[ $verb == tool ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls show run pipe init trust" -- "$word")
	elif [[ $verb == mcp ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "serve wrap trust ls forget install uninstall" -- "$word")
	elif [[ $verb == image ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "import pull build ls rm gc" -- "$word")
	elif [[ $verb == vm ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "setup template root ls" -- "$word")
	elif [[ $verb == wasm ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls rm" -- "$word")
	elif [[ $verb == volume ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "ls rm" -- "$word")
	elif [[ $verb == token ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "create ls revoke" -- "$word")
	elif [[ $verb == net ]] && ((COMP_CWORD == 3)); then
		mapfile -t COMPREPLY < <(compgen -W "$(ward ps -q 2>/dev/null)" -- "$word")
	elif [[ $verb == checkpoint ]]; then
		((COMP_CWORD > 2)) || mapfile -t COMPREPLY < <(compgen -W "ls rm $(ward ps -q 2>/dev/null)" -- "$word")
	elif [[ $verb == @(attach|wait|pause|evidence|resume|stop|kill|logs|stats|rm) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(ward ps -aq 2>/dev/null)" -- "$word")
	elif [[ $verb == @(run|agent|shell|learn|plan|exec|tool) ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -o filenames -F _ward ward
