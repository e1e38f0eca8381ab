/*
 * The gateway while it runs: other rules, and what there is to see. In: lines of `ward net`. Out:
 * compiled rules of the next generation, given to the kernel (what it brings), then to dial, and
 * only when dial has taken them to front: so a connection that front lets through is never refused
 * by a dial that knows less, and what dial no longer connects front may still ask for. Whatever
 * fails in between leaves the old rules, or fewer; a gateway that does not take them in time is
 * ended, and the sandbox has no network. Several changes may be on their way: front is only ever
 * given the last. Nothing here waits. Runs in the supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "egress/egress_internal.h"
#include "event/event.h"
#include "plan/plan_net.h"

#define TAKE_MS 3000

enum egress_state egress_state(const struct egress *g)
{
	return g->waiting_fd >= 0 ? EGRESS_WAITING : g->fd >= 0 ? EGRESS_RUNNING : EGRESS_ENDED;
}

uint64_t egress_generation(const struct egress *g)
{
	return egress_state(g) == EGRESS_RUNNING ? g->taken : g->rules->generation;
}

const struct rules *egress_rules(const struct egress *g)
{
	return g->rules;
}

uint32_t egress_closed(const struct egress *g)
{
	return g->closed;
}

bool egress_by_port(const struct egress *g)
{
	return g->ports;
}

/* -- making them */

static int compile(const struct rules *old, char *const *lines, size_t count, bool deny,
		   struct rules **ret, struct ward_err *e)
{
	auto_rules now = NULL;

	for (size_t i = 0; i < count; i++) {
		struct rules *next = NULL;

		if (rules_change(now ? now : old, lines[i], deny, &next, e) < 0)
			return ward_wrap(e, "%.200s", lines[i]);
		rules_free(now);
		now = next;
	}
	if (!now)
		return ward_fail(e, EINVAL, "no rule given");
	/* one change, one number */
	now->generation = old->generation + 1;
	*ret = take_ptr(now);
	return 0;
}

/* The certificates that the sandbox trusts were fixed when it was built: a rule for another name
 * cannot have its TLS ended now. */
static int check_inspect(const struct rules *first, const struct rules *new, struct ward_err *e)
{
	for (uint32_t i = 0; i < new->n_items; i++) {
		auto_buf text = { 0 };

		if (rules_is_prepared(first, new, i))
			continue;
		rules_text(new, (int32_t)i, &text);
		if (new->items[i].waf && !rules_waf(first, -1, 0)) {
			ward_fail(e, EOPNOTSUPP,
				  "%s: the sandbox was started without a rule with waf",
				  buf_text(&text));
			return ward_remedy(
				e, "remove waf, or start a new run with this rule in the policy");
		}
		ward_fail(e, EOPNOTSUPP,
			  "%s: the sandbox was started without an inspect rule for this name",
			  buf_text(&text));
		return ward_remedy(e, "remove mode, methods, paths and the like, or start a new "
				      "run with this rule in the policy");
	}
	return 0;
}

static bool came_alive(const struct rules *old, const struct rules *new, uint32_t i)
{
	return !new->items[i].dead && (i >= old->n_items || old->items[i].dead);
}

/* What is temporary ends with nothing changed: so it must not take anything back. */
static int check_temporary(const struct egress *g, const struct rules *new, struct ward_err *e)
{
	size_t more = 0;

	for (uint32_t i = 0; i < new->n_items; i++) {
		if (i < g->rules->n_items && !g->rules->items[i].dead && new->items[i].dead) {
			auto_buf text = { 0 };

			rules_text(g->rules, (int32_t)i, &text);
			ward_fail(e, EINVAL,
				  "--temporary: this would revoke the rule for %s when it expires",
				  buf_text(&text));
			return ward_remedy(e, "change that rule permanently first");
		}
		more += came_alive(g->rules, new, i);
	}
	if (g->until_count + more <= EGRESS_TEMPORARY_MAX)
		return 0;
	return ward_fail(e, E2BIG, "--temporary: more than %d temporary rules",
			 EGRESS_TEMPORARY_MAX);
}

static void note_temporary(struct egress *g, const struct rules *old, uint64_t seconds)
{
	size_t kept = 0;

	/* what was replaced has no end of its own any more */
	for (size_t i = 0; i < g->until_count; i++)
		if (!g->rules->items[g->until[i].rule].dead)
			g->until[kept++] = g->until[i];
	g->until_count = kept;
	for (uint32_t i = 0;
	     seconds && i < g->rules->n_items && g->until_count < EGRESS_TEMPORARY_MAX; i++)
		if (came_alive(old, g->rules, i))
			g->until[g->until_count++] =
				(struct egress_until){ i, io_now_ms() + seconds * 1000 };
}

uint64_t egress_remaining_ms(const struct egress *g, uint32_t rule)
{
	uint64_t now = io_now_ms();

	for (size_t i = 0; i < g->until_count; i++)
		if (g->until[i].rule == rule)
			return g->until[i].at_ms > now ? g->until[i].at_ms - now : 1;
	return 0;
}

/* -- giving them */

static bool has_port(const struct plan_net *n, uint16_t port)
{
	for (size_t i = 0; i < n->port_count; i++)
		if (n->ports[i] == port)
			return true;
	return false;
}

/* What the kernel brings. More than the rules in force allow opens nothing: the gateway decides. */
static int bring(struct egress *g, const struct rules *new, struct plan_net *ret,
		 struct ward_err *e)
{
	*ret = (struct plan_net){ .classes = g->bring.classes };
	plan_net_tproxy(new, ret);
	for (size_t i = 0; g->ports && i < ret->port_count; i++)
		if (!has_port(&g->plan->net, ret->ports[i])) {
			ward_fail(e, EOPNOTSUPP,
				  "port %u was not in the policy, and without nf_tables and TPROXY "
				  "in the kernel a running sandbox cannot get another port",
				  ret->ports[i]);
			return ward_remedy(e,
					   "add the port to network.egress_allowlist, or use "
					   "--allow HOST:%u, and start a new run",
					   ret->ports[i]);
		}
	if (g->ports || (ret->match_count == g->bring.match_count &&
			 memcmp(ret->matches, g->bring.matches,
				ret->match_count * sizeof(ret->matches[0])) == 0))
		return 0;
	if (g->rules_fd < 0 || !g->engine->tproxy)
		return ward_fail(e, EOPNOTSUPP, "this sandbox cannot get another port");
	return g->engine->tproxy(g->rules_fd, ret->matches, ret->match_count, e);
}

static int give(const struct egress *g, int fd, const void *order, size_t n, struct ward_err *e)
{
	auto_fd config = egress_write_config(g, e);
	int r = config < 0 ? config : io_send_fds(fd, order, n, &config, 1);

	return config >= 0 && r < 0
		       ? ward_fail(e, -r, "the gateway does not accept rules: %s", strerror(-r))
		       : r;
}

static int give_dial(struct egress *g, struct ward_err *e)
{
	const struct dial_order order = { .word = DIAL_RULES };

	return give(g, g->orders_fd, &order, sizeof(order), e);
}

static int give_front(struct egress *g, struct ward_err *e)
{
	const struct gate_order order = { .word = GATE_RULES };

	g->asked = g->rules->generation;
	return give(g, g->fd, &order, sizeof(order), e);
}

/* Takes new as the rules from here on. */
static int put_in_force(struct egress *g, struct rules *new, const struct plan_net *bring_now,
			uint64_t seconds, struct ward_err *e)
{
	const struct rules *old = g->rules;
	struct rules *old_own = g->own;
	int r = 0;

	g->rules = g->own = new;
	memcpy(g->bring.matches, bring_now->matches, sizeof(g->bring.matches));
	g->bring.match_count = bring_now->match_count;
	g->bring.classes = bring_now->classes;
	note_temporary(g, old, seconds);
	rules_free(old_own);
	g->closed = 0;
	if (egress_state(g) != EGRESS_RUNNING)
		return 0;
	g->taken_by_ms = io_now_ms() + TAKE_MS;
	g->rest_ms = 0;
	r = give_dial(g, e);
	if (r < 0)
		egress_cut(g); /* which of both rules it has is not known */
	return r;
}

int egress_change(struct egress *g, char *const *lines, size_t count, bool deny, uint64_t seconds,
		  uint64_t *ret_generation, struct ward_err *e)
{
	struct plan_net now = { 0 };
	struct rules *new = NULL;
	int r;

	if (g->rules->network == RULES_NONE) {
		ward_fail(e, EOPNOTSUPP,
			  "the policy of this sandbox grants no network (network.mode: none)");
		return ward_remedy(e,
				   "start it with network.mode: restricted, or with --allow HOST");
	}
	if (egress_state(g) == EGRESS_ENDED)
		return ward_fail(e, ENOTCONN,
				 "the gateway of this sandbox has exited: the sandbox no longer "
				 "has a network");
	r = compile(g->rules, lines, count, deny, &new, e);
	if (r < 0 || !new)
		return r;
	r = check_inspect(g->plan->net.rules, new, e);
	if (r == 0 && seconds)
		r = check_temporary(g, new, e);
	if (r == 0)
		r = bring(g, new, &now, e);
	if (r < 0) {
		rules_free(new);
		return r;
	}
	*ret_generation = new->generation;
	return put_in_force(g, new, &now, seconds, e);
}

/* -- what is answered */

static const char *const files[DIAL_FILE_COUNT] = {
	[DIAL_HOSTS] = "/etc/hosts", [DIAL_RESOLVER] = "/etc/resolv.conf"
};

void egress_look_at_files(struct egress *g, uint32_t *ret_changed)
{
	*ret_changed = 0;
	for (unsigned i = 0; i < DIAL_FILE_COUNT; i++) {
		struct egress_file now, *then = &g->files[i];
		struct stat st;

		if (stat(files[i], &st) < 0)
			continue; /* being replaced: dial keeps what it has */
		now = (struct egress_file){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
		if (now.device == then->device && now.inode == then->inode &&
		    now.bytes == then->bytes && now.changed.tv_sec == then->changed.tv_sec &&
		    now.changed.tv_nsec == then->changed.tv_nsec)
			continue;
		*then = now;
		*ret_changed |= 1U << i;
	}
}

/* dial asks before it looks up a name, at most once a second: it cannot open a file. */
static void give_files(struct egress *g)
{
	struct dial_order order = { .word = DIAL_FILES };
	uint32_t changed = 0;
	int fds[DIAL_FILE_COUNT];
	size_t count = 0;

	egress_look_at_files(g, &changed);
	for (unsigned i = 0; i < DIAL_FILE_COUNT; i++) {
		int fd = changed & 1U << i
				 ? open(files[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
				 : -1;

		if (fd < 0)
			continue;
		order.files |= 1U << i;
		fds[count++] = fd;
	}
	/* without an answer it goes on with what it has */
	(void)!io_send_fds(g->orders_fd, &order, sizeof(order), fds, count);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

void egress_handle_orders(struct egress *g)
{
	struct dial_word said;
	struct ward_err e = { 0 };
	ssize_t n = recv(g->orders_fd, &said, sizeof(said), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(said)) { /* front will find out, too */
		own_close_fd(&g->orders_fd);
		g->orders_fd = -1;
		return;
	}
	if (said.kind == DIAL_LOOK)
		give_files(g);
	if (said.kind == DIAL_GRANTED)
		egress_on_granted(g, said.generation);
	if (said.kind == DIAL_TAKEN && said.generation == g->rules->generation &&
	    said.generation > g->asked && g->fd >= 0 && give_front(g, &e) < 0)
		egress_cut(g);
}

void egress_on_taken(struct egress *g, const struct gate_event *event)
{
	if (event->generation <= g->taken || event->generation > g->asked)
		return;
	g->taken = event->generation;
	g->closed = event->count;
	if (g->taken == g->rules->generation)
		g->taken_by_ms = 0;
}

void egress_on_shown(struct egress *g, egress_shown shown, void *context)
{
	g->shown = shown;
	g->shown_context = context;
}

int egress_ask(struct egress *g, unsigned what, uint32_t from, uint32_t tag)
{
	const struct gate_order order = {
		.word = GATE_SHOW, .what = (uint8_t)what, .from = from, .tag = tag
	};

	if (egress_state(g) != EGRESS_RUNNING)
		return -ENOTCONN;
	g->rest_ms = 0;
	return send(g->fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* -- time */

uint64_t egress_due_ms(const struct egress *g)
{
	uint64_t due = g && g->fd >= 0 ? g->taken_by_ms : 0;

	if (g && g->rest_ms && (!due || g->rest_ms < due))
		due = g->rest_ms;
	for (size_t i = 0; g && i < g->until_count; i++)
		if (!due || g->until[i].at_ms < due)
			due = g->until[i].at_ms;
	return due;
}

static void report_end(const struct egress *g, uint32_t rule, struct result *r)
{
	auto_buf text = { 0 };
	struct ward_event v;

	rules_text(g->rules, (int32_t)rule, &text);
	v = event_make(EVENT_POLICY_CHANGE, ACTION_LOG, buf_text(&text));
	event_text(&v, FIELD_CHANGE, "end");
	event_text(&v, FIELD_WHY, "it expired");
	event_number(&v, FIELD_GENERATION, g->rules->generation + 1);
	event_emit(r->events, &v);
}

/* Rules whose time is up. The kernel may go on to bring them: the gateway refuses. */
static void end_temporary(struct egress *g, uint64_t now, struct result *r)
{
	uint32_t over[EGRESS_TEMPORARY_MAX];
	struct rules *new = NULL;
	struct ward_err e = { 0 };
	struct plan_net bring_now = { 0 };
	size_t count = 0;
	int status;

	for (size_t i = 0; i < g->until_count; i++)
		if (now >= g->until[i].at_ms)
			over[count++] = g->until[i].rule;
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		report_end(g, over[i], r);
	status = rules_retire(g->rules, over, count, &new, &e);
	if (status == 0) {
		status = bring(g, new, &bring_now, &e);
		if (status < 0)
			rules_free(new);
		else
			status = put_in_force(g, new, &bring_now, 0, &e);
	}
	if (status < 0) {
		g->until_count = 0;
		egress_cut(g); /* rather none than one that should be over */
	}
}

void egress_on_time(struct egress *g, uint64_t now_ms, struct result *r)
{
	bool ran;

	if (!g)
		return;
	if (now_ms >= g->rest_ms)
		g->rest_ms = 0;
	ran = egress_state(g) == EGRESS_RUNNING;
	end_temporary(g, now_ms, r);
	if (g->taken_by_ms && g->fd >= 0 && now_ms >= g->taken_by_ms)
		egress_cut(g);
	if (ran && g->fd < 0)
		strv_add(&r->notes, "the gateway did not accept new rules and was stopped: from "
				    "then on the sandbox had no network");
}
