/*
 * Invoking a tool. In: arguments, from a person or a model. Out: a result that may be shown. In
 * order: bind the arguments, make the policy and refuse one that is wider than the agent's, ask a
 * person where the tool wants that, run, judge the output apart, look for secrets. Every step that
 * fails ends the call; output that is blocked is never handed out. Runs with the user's rights.
 */
#include "tools/invoke.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "tools/bind_http.h"
#include "tools/mcp_call.h"
#include "tools/scope.h"

void invoke_free(struct invoke_result *r)
{
	call_result_free(&r->call);
	strv_free(&r->findings);
	*r = (struct invoke_result){ 0 };
}

/* *ret_path: the file that the scope may not exceed, NULL: there is none; the caller frees. */
static int make_policy(const struct tools_source *s, const struct tool_agent *agent,
		       const struct tool_tool *tool, const char *empty, struct policy *ret,
		       char **ret_path, struct policy_errors *errors, struct ward_err *e)
{
	const struct scope_place place = { s->workspace, s->home, empty };
	struct policy base = { 0 };
	auto_strv wider = { 0 };
	int r = tools_load_policy(s, agent, true, &base, ret_path, errors, e);
	auto_buf shown = { 0 };

	if (r < 0)
		return r;
	r = scope_policy(tool, &place, r > 0 ? &base : NULL, ret, &wider, e);
	policy_clear(&base);
	if (r < 0 || !wider.len)
		return r;
	text_escape(&shown, wider.items[0]);
	ward_fail(e, EPERM, "the scope of %s is wider than %.200s: %.300s%s", tool->head.name,
		  *ret_path ? *ret_path : "what it may have without a policy", buf_text(&shown),
		  wider.len > 1 ? ", and more" : "");
	return ward_remedy(e, "ward check %.200s lists all of it", s->shown);
}

int tools_make_policy(const struct tools_source *s, const struct tool_agent *agent,
		      const struct tool_tool *tool, const char *empty, struct policy *ret,
		      struct policy_errors *errors, struct ward_err *e)
{
	auto_free char *path = NULL;

	return make_policy(s, agent, tool, empty, ret, &path, errors, e);
}

/* What may be shown of the output, and what not. */
static int judge(const struct tool_tool *tool, struct invoke_result *ret, struct ward_err *e)
{
	const struct buf *out = &ret->call.out;
	const char *schema = ret->call.exit_code == 0 ? tool->output : NULL;
	auto_strv rules = { 0 };
	int r = output_judge_apart(out, schema, &ret->verdict, e);

	if (r == 0)
		r = output_scan(out, &rules, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rules.len; i++)
		strv_addf(&ret->findings, "secret: %.*s in line %s",
			  (int)strcspn(rules.items[i], ":"), rules.items[i],
			  strrchr(rules.items[i], ':') + 1);
	if (ret->verdict.hidden)
		strv_addf(&ret->findings, "hidden text: %u characters, the first in line %u",
			  ret->verdict.hidden, ret->verdict.hidden_line);
	if (!ret->verdict.matches) {
		ret->blocked = true;
		snprintf(ret->why, sizeof(ret->why), "the output does not match its schema: %s%s%s",
			 ret->verdict.why.path, *ret->verdict.why.path ? ": " : "",
			 ret->verdict.why.message);
	} else if (ret->findings.len && tool->scan == RESULT_BLOCK) {
		ret->blocked = true;
		snprintf(ret->why, sizeof(ret->why), "the output was blocked: %s%s",
			 ret->findings.items[0], ret->findings.len > 1 ? ", and more" : "");
	}
	return 0;
}

static void sum_up(const struct tool_tool *tool, struct invoke_result *ret)
{
	if (ret->call.output_limit) {
		ret->blocked = true;
		snprintf(ret->why, sizeof(ret->why),
			 "the output has more than %llu bytes (scope.limits.output)",
			 (unsigned long long)tool->scope.limits.output);
	}
	ret->ok = !ret->blocked && ret->call.exit_code == 0;
	if (!ret->ok && !*ret->why)
		snprintf(ret->why, sizeof(ret->why), "exit code %d%s%s", ret->call.exit_code,
			 ret->call.limits.len ? ", limit hit: " : "",
			 ret->call.limits.len ? ret->call.limits.items[0] : "");
	if (ret->blocked) /* never handed out, whatever the caller does */
		buf_free(&ret->call.out);
}

static int check_caller(const struct invoke_request *r, struct ward_err *e)
{
	if (r->agent && !strv_has(&r->agent->tools, r->tool->head.name))
		return ward_fail(e, EPERM, "agent %s does not hold the tool %s",
				 r->agent->head.name, r->tool->head.name);
	if (r->tool->canary)
		return ward_fail(e, EPERM, "%s is a canary: it never runs", r->tool->head.name);
	if (r->input && !r->tool->takes_stdin)
		return ward_fail(e, EINVAL, "%s reads no standard input (stdin: true)",
				 r->tool->head.name);
	return 0;
}

static int approve(const struct invoke_request *r, const struct tools_call *call,
		   struct ward_err *e)
{
	if (r->tool->nature.approval != APPROVAL_ALWAYS || r->approved)
		return 0;
	if (r->approve)
		return r->approve(r, call, e);
	return ward_fail(e, EACCES, "%s needs a person's agreement, and nobody can be asked",
			 r->tool->head.name);
}

static int start(const struct invoke_request *r, const struct call_place *at,
		 const struct policy *policy, struct tools_call *call, struct call_result *ret,
		 struct ward_err *e)
{
	const struct call_request request = {
		.policy = policy,
		.argv = call->argv.items,
		.input = r->input         ? r->input
			 : call->body.len ? &call->body
					  : NULL,
		.output_max = r->tool->scope.limits.output,
	};

	if (r->tool->mcp.head.node)
		return mcp_call(r->source, at, policy, r->tool, call->input, ret, e);
	return call_run(at, &request, ret, e);
}

int tools_invoke(const struct invoke_request *r, struct invoke_result *ret,
		 struct policy_errors *errors, struct ward_err *e)
{
	auto_place at = { 0 };
	auto_call call = { 0 };
	auto_free char *path = NULL;
	auto_free char *real = NULL;
	struct policy policy = { 0 };
	int result;

	*ret = (struct invoke_result){ 0 };
	result = check_caller(r, e);
	if (result == 0)
		result = tools_bind(&r->source->t, r->tool, r->source->workspace, r->source->home,
				    r->arguments, r->count, &call, e);
	if (result == 0 && r->tool->http.head.node)
		result = bind_http(r->tool, &call, e);
	if (result == 0)
		result = call_place_open(&at, e);
	if (result == 0)
		result = make_policy(r->source, r->agent, r->tool, at.empty, &policy, &path, errors,
				     e);
	if (result == 0)
		result = approve(r, &call, e);
	real = path ? realpath(path, NULL) : NULL;
	if (result == 0)
		result = call_name(r->tool->head.name, r->agent ? r->agent->head.name : NULL,
				   r->source->path, real, e);
	if (result == 0)
		result = start(r, &at, &policy, &call, &ret->call, e);
	policy_clear(&policy);
	if (result == 0 && ret->call.refused) {
		auto_buf text = { 0 };

		text_escape(&text, buf_text(&ret->call.error));
		return ward_fail(e, EPERM, "ward run refused the call: %.600s", buf_text(&text));
	}
	if (result == 0)
		result = judge(r->tool, ret, e);
	if (result == 0)
		sum_up(r->tool, ret);
	return result;
}

static void put_lines(struct json *j, const char *key, const struct strv *lines)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < lines->len; i++)
		json_string(j, NULL, lines->items[i]);
	json_end_array(j);
}

/* A JSON value as it is, on one line: line ends stand between its tokens only. */
static void put_value(const struct buf *value, struct buf *out)
{
	buf_puts(out, ",\"output\":");
	for (size_t i = 0; i < value->len; i++)
		buf_add(out, strchr("\t\r\n", value->data[i]) ? " " : &value->data[i], 1);
}

void invoke_json(const struct tool_tool *tool, const struct invoke_result *r, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "tool", tool->head.name);
	json_bool(&j, "ok", r->ok);
	json_string(&j, "why", *r->why ? r->why : NULL);
	json_int(&j, "exit", r->call.exit_code);
	json_string(&j, "run", *r->call.run_id ? r->call.run_id : NULL);
	json_uint(&j, "duration_ms", r->call.duration_ms);
	if (r->verdict.is_json && !r->blocked) {
		put_value(&r->call.out, out);
	} else {
		json_string(&j, "output", r->blocked ? NULL : buf_text(&r->call.out));
	}
	json_string(&j, "error", buf_text(&r->call.error));
	put_lines(&j, "findings", &r->findings);
	put_lines(&j, "denials", &r->call.denials);
	put_lines(&j, "limits", &r->call.limits);
	json_end_object(&j);
}
