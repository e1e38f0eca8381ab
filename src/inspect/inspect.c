/*
 * Inspection, as flow.c sees it. In: the sandbox's rules, the host's trust store by descriptor.
 * Out: an authority whose certificate goes to the supervisor before the sandbox is built, and the
 * functions that take over flows of mode inspect. Only ward-gateway-tls has this file: a sandbox
 * without such rules pays nothing for it. Runs in front.
 */
#include "inspect/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "gateway/inspect_main.h"
#include "tape/record.h"
#include "tape/replay.h"
#include "transport/java_store.h"
#include "transport/tls_roots.h"

/* The names that the authority is for: those of the rules that end TLS, each once. All of them
 * where a rule is for every name. */
static size_t gather_names(const struct rules *r, const char **names, bool *ret_every)
{
	size_t n = 0;

	*ret_every = false;
	for (uint32_t i = 0; i < r->n_items; i++) {
		const struct rule *rule = &r->items[i];
		bool known = false;

		if (rule->deny || rule->dead || !rule->moded || rule->mode != RULE_INSPECT)
			continue;
		*ret_every |= rule->kind == RULE_ANY;
		for (size_t k = 0; k < n && !known; k++)
			known = strcmp(names[k], r->text + rule->host) == 0;
		if (!known && n <= CA_NAMES_MAX)
			names[n++] = r->text + rule->host;
	}
	return *ret_every ? 0 : n;
}

/* What the sandbox is to trust, as one memory file: the store with our certificate behind it, and
 * the same for Java. */
static int write_trust(const struct inspector *i, struct ward_err *e)
{
	struct gate_trust head = { .magic = GATE_MAGIC, .hash = ca_hash(i->ca) };
	auto_buf own = { 0 }, bundle = { 0 }, java = { 0 };
	auto_fd fd = memfd_create("ward-trust", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = lseek(GATE_FD_TRUST, 0, SEEK_SET) < 0
			? -errno
			: io_read_all(GATE_FD_TRUST, TLS_TRUST_MAX, &bundle);

	buf_puts(&bundle, "\n");
	if (fd < 0 || r < 0 || !ca_pem(i->ca, &own) || !ca_pem(i->ca, &bundle) ||
	    !java_store_write(tls_trust_roots(i->trust), i->ca, &java) || bundle.failed)
		return ward_fail(e, r < 0 ? -r : ENOMEM,
				 "cannot write what the sandbox is to trust");
	head.own_bytes = (uint32_t)own.len;
	head.bundle_bytes = (uint32_t)bundle.len;
	head.java_bytes = (uint32_t)java.len;
	r = io_write_all(fd, &head, sizeof(head));
	if (r == 0)
		r = io_write_all(fd, own.data, own.len);
	if (r == 0)
		r = io_write_all(fd, bundle.data, bundle.len);
	if (r == 0)
		r = io_write_all(fd, java.data, java.len);
	if (r < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return ward_fail(e, EIO, "cannot write what the sandbox is to trust");
	return take_fd(&fd);
}

static int prepare_tls(struct inspector *i, const struct rules *rules, struct ward_err *e)
{
	const char *names[CA_NAMES_MAX + 1];
	struct gate_event event = { .kind = GATE_TRUST };
	bool every;
	size_t n = gather_names(rules, names, &every);
	auto_fd fd = -1;
	int r = tls_trust_new(GATE_FD_TRUST, &i->trust, e);

	if (r == 0)
		r = ca_new(names, every ? 0 : n, &i->ca, e);
	if (r < 0)
		return r;
	fd = write_trust(i, e);
	if (fd < 0)
		return fd;
	r = io_send_fds(GATE_FD_CONTROL, &event, sizeof(event), &fd, 1);
	if (r < 0)
		return ward_fail(e, -r, "the supervisor is gone");
	/* the sandbox is being built meanwhile */
	r = tls_trust_ready(i->trust, e);
	i->tls = tls_server_new();
	return r == 0 && !i->tls ? ward_fail(e, ENOMEM, "out of memory") : r;
}

static int prepare(struct front *f, struct ward_err *e)
{
	struct inspector *i = calloc(1, sizeof(*i));
	int r = 0;

	if (!i)
		return ward_fail(e, ENOMEM, "out of memory");
	f->inspector = i;
	r = waf_open(f, e);
	if (r == 0 && rules_inspect(f->rules))
		r = prepare_tls(i, f->rules, e);
	if (f->has_trust)
		close(GATE_FD_TRUST);
	return r;
}

static void begin(struct front *f, struct flow *w)
{
	if (w->verdict.mode == RULE_PLAIN ||
	    (w->verdict.mode == RULE_INSPECT && inspector_of(f)->ca)) {
		exchange_begin(f, w);
		return;
	}
	verdict_refuse(&w->verdict, REASON_NO_INSPECTION);
	flow_refuse_by_verdict(f, w, EACCES);
}

static bool run(struct front *f, struct flow *w)
{
	return w->server ? server_run(f, w) : exchange_run(f, w);
}

static void closed(struct front *f, struct flow *w)
{
	if (w->server)
		server_closed(f, w);
	else
		exchange_closed(f, w);
}

static const struct inspect_ops ops = { prepare,           begin,      run,
					server_dialled,    closed,     record_start,
					record_stop,       record_cut, record_main,
					replay_main,       waf_read,   requests_answered,
					requests_ask_later };
const struct inspect_ops *const inspect_here = &ops;
