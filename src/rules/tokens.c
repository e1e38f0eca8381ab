/*
 * Counting tokens. In: an answer's body, in pieces. Out: numbers. A reader of JSON that keeps no
 * document: a level's kind, the key it is at, and the beginning of a text that may be a model's
 * name. Whatever is not JSON counts nothing. Pure; runs in front.
 */
#include "rules/tokens.h"

#include <string.h>
#include <strings.h>

enum { LEVEL_OBJECT = 1, LEVEL_USAGE = 2, LEVEL_MODEL = 4, LEVEL_BEGIN = 8, LEVEL_SOURCE = 16 };
enum { READ_VALUE, READ_KEY_TEXT, READ_COLON, READ_TEXT, READ_NUMBER, READ_WORD };
enum { LINE_BEGIN, LINE_D, LINE_DA, LINE_DAT, LINE_DATA, LINE_COLON, LINE_PAYLOAD, LINE_OTHER };

#define NUMBER_MAX UINT64_C(1000000000000000)

void tokens_begin(struct tokens *t, bool events)
{
	memset(t, 0, sizeof(*t));
	t->events = events;
}

void tokens_begin_request(struct tokens *t)
{
	tokens_begin(t, false);
	t->request = true;
	t->choices = 1;
}

static void begin_document(struct tokens *t)
{
	t->state = READ_VALUE;
	t->depth = 0;
	t->key_len = t->text_len = t->escape = 0;
	t->broken = t->whole = false;
}

static bool key_is(const struct tokens *t, const char *name)
{
	return t->key_len == strlen(name) && memcmp(t->key, name, t->key_len) == 0;
}

static uint8_t level(const struct tokens *t)
{
	return t->depth ? t->kinds[t->depth - 1] : 0;
}

static void keep_most(uint64_t *where, uint64_t number)
{
	if (number > *where)
		*where = number;
}

/* Keys of a request that decide about its price. Limits are numbers. */
enum { KNOWN_NONE, KNOWN_MODEL, KNOWN_BACKGROUND, KNOWN_LIMITS };
static const char *const known_keys[] = {
	"model", "background", "max_tokens", "max_completion_tokens", "max_output_tokens",
	"n",     "best_of"
};

/* A key at the top of a request has ended. Servers differ in which of two counts, and in whether
 * case matters. */
static void end_key(struct tokens *t)
{
	t->known = KNOWN_NONE;
	for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++) {
		if (t->key_len != strlen(known_keys[i]) ||
		    strncasecmp(t->key, known_keys[i], t->key_len) != 0)
			continue;
		t->odd |= !key_is(t, known_keys[i]) || t->seen & 1u << i;
		t->seen |= (uint8_t)(1u << i);
		t->known = (uint8_t)(i + 1);
	}
}

/* Keys whose value is something that the server fetches itself, or does: stored conversations,
 * files, pages, tools of its own. */
static const struct {
	const char *key;
	/* only at the top of a request; an object, where is_object */
	bool top;
	bool is_object;
} references[] = {
	{ "previous_response_id", true, false },
	{ "conversation", true, false },
	{ "prompt", true, true }, /* a stored one; text is text */
	{ "container", true, false },
	{ "mcp_servers", true, false },
	{ "web_search_options", true, false },
	{ "search_parameters", true, false },
	{ "data_sources", true, false },
	{ "plugins", true, false },
	{ "file_id", false, false },
	{ "file_ids", false, false },
	{ "file_url", false, false },
	{ "image_url", false, false },
	{ "vector_store_ids", false, false },
	{ "server_url", false, false },
	{ "connector_id", false, false },
};

/* A value in a request begins. */
static void note_reference(struct tokens *t, char c)
{
	bool url = level(t) & LEVEL_SOURCE && t->key_len == 3 && strncasecmp(t->key, "url", 3) == 0;

	/* null is nothing */
	if (strchr(",}]n", c) || !(level(t) & LEVEL_OBJECT) || !t->key_len)
		return;
	t->refers |= url;
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		if (t->key_len == strlen(references[i].key) &&
		    strncasecmp(t->key, references[i].key, t->key_len) == 0)
			t->refers |= (t->depth == 1 || !references[i].top) &&
				     (c == '{' || !references[i].is_object);
}

/* The type of a tool that the server runs: it may read as much as it likes, and ask the model
 * again. */
static bool is_server_tool(const struct tokens *t)
{
	static const char *const types[] = {
		"web_search",         "web_fetch",        "file_search", "code_interpreter",
		"code_execution",     "image_generation", "mcp",         "advisor",
		"bash_code_execution"
	};
	bool found = false;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !found; i++)
		found = t->text_len >= strlen(types[i]) &&
			strncasecmp(t->text, types[i], strlen(types[i])) == 0;
	return found;
}

/* A value at the top of a request begins. */
static void begin_wish(struct tokens *t, char c)
{
	if (strchr(",}]", c))
		return;
	t->later |= t->known == KNOWN_BACKGROUND && c != 'f' && c != 'n';
	t->odd |= t->known >= KNOWN_LIMITS && !(c >= '0' && c <= '9') && c != 'n';
}

/* A number at the top of a request: the largest one counts. Servers disagree about one with an
 * exponent. */
static void end_wish(struct tokens *t)
{
	static const char *const most[TOKENS_LIMITS] = TOKENS_LIMIT_KEYS;
	bool known = false;

	for (size_t i = 0; i < TOKENS_LIMITS; i++)
		if (key_is(t, most[i])) {
			known = true;
			keep_most(&t->limits[i], t->number);
			keep_most(&t->most, t->number);
		}
	if (key_is(t, "n") || key_is(t, "best_of")) {
		known = true;
		keep_most(&t->choices, t->number);
	}
	t->odd |= known && t->number_ends;
}

static void end_number(struct tokens *t)
{
	static const char *const inputs[] = { "input_tokens", "prompt_tokens" },
				 *const outputs[] = { "output_tokens", "completion_tokens" };

	if (t->request && t->depth == 1)
		end_wish(t);
	if (!(level(t) & LEVEL_USAGE))
		return;
	t->said |= !(level(t) & LEVEL_BEGIN);
	for (int i = 0; i < 2; i++) {
		if (key_is(t, inputs[i]))
			keep_most(&t->input, t->number);
		if (key_is(t, outputs[i]))
			keep_most(&t->output, t->number);
	}
	if (key_is(t, "cache_read_input_tokens"))
		keep_most(&t->cache_read, t->number);
	if (key_is(t, "cache_creation_input_tokens"))
		keep_most(&t->cache_write, t->number);
	if (key_is(t, "cached_tokens")) {
		keep_most(&t->cache_read, t->number);
		t->cached_inside = true;
	}
}

static void end_text(struct tokens *t)
{
	t->refers |= t->request && key_is(t, "type") && is_server_tool(t);
	if (!key_is(t, "model") || !(level(t) & LEVEL_MODEL))
		return;
	t->odd |= t->text_len >= TOKENS_MODEL;
	if (t->text_len < TOKENS_MODEL) {
		t->odd |= t->model_said && (strlen(t->model) != t->text_len ||
					    memcmp(t->model, t->text, t->text_len) != 0);
		t->model_said = true;
		memcpy(t->model, t->text, t->text_len);
		t->model[t->text_len] = '\0';
	}
}

/* An answer, a message, a response say which model; what is deeper is content. */
static void open_level(struct tokens *t, bool object)
{
	uint8_t above = level(t), kind = object ? LEVEL_OBJECT : 0;

	if (t->depth == TOKENS_DEPTH) {
		t->broken = true;
		return;
	}
	if (object && ((above & LEVEL_MODEL && key_is(t, "usage")) || above & LEVEL_USAGE))
		kind |= LEVEL_USAGE;
	if (object && (!t->depth || (t->depth == 1 && above & LEVEL_MODEL &&
				     (key_is(t, "message") || key_is(t, "response")))))
		kind |= LEVEL_MODEL;
	if (object && t->request &&
	    (key_is(t, "source") || key_is(t, "image_url") || key_is(t, "file")))
		kind |= LEVEL_SOURCE;
	/* Anthropic's message_start has the usage so far; that of the end is in message_delta */
	if (above & LEVEL_BEGIN || (t->depth == 1 && t->events && key_is(t, "message")))
		kind |= LEVEL_BEGIN;
	t->kinds[t->depth++] = kind;
	t->key_len = 0;
	t->state = READ_VALUE;
}

/* Texts that a model has written. */
static bool is_written(const struct tokens *t)
{
	static const char *const keys[] = { "content",   "text",
					    "delta",     "partial_json",
					    "arguments", "thinking",
					    "reasoning", "reasoning_content",
					    "refusal" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (key_is(t, keys[i]))
			return true;
	return false;
}

static void begin_value(struct tokens *t, char c)
{
	bool in_object = level(t) & LEVEL_OBJECT;

	if (t->request && t->depth == 1 && t->key_len)
		begin_wish(t, c);
	if (t->request)
		note_reference(t, c);
	if (!t->depth && t->whole) { /* a second document */
		t->odd = true;
		t->broken |= t->request;
	}

	if (c == '{' || c == '[') {
		open_level(t, c == '{');
	} else if (c == '}' || c == ']') {
		if (!t->depth || in_object != (c == '}'))
			t->broken = true;
		else
			t->whole = --t->depth == 0;
	} else if (c == '"') {
		t->state = in_object && !t->key_len ? READ_KEY_TEXT : READ_TEXT;
		t->text_len = 0;
		t->text_counts = t->state == READ_TEXT && is_written(t);
	} else if (c >= '0' && c <= '9') {
		t->state = READ_NUMBER;
		t->number = (uint64_t)(c - '0');
		t->number_ends = false;
	} else if (c == ',') {
		t->key_len = 0;
	} else if (c == 't' || c == 'f' || c == 'n' || c == '-') {
		t->state = READ_WORD;
	} else {
		t->broken = true;
	}
}

static void take_text(struct tokens *t, char c)
{
	bool key = t->state == READ_KEY_TEXT;

	if (t->escape) {
		t->escape = 0;
		c = '?'; /* no name that matters has an escape */
		t->odd |= t->depth == 1 && (key || key_is(t, "model"));
		t->refers |= key || key_is(t, "type"); /* its meaning is unknown */
	} else if (c == '\\') {
		t->escape = 1;
		return;
	} else if (c == '"') {
		if (key) {
			t->state = READ_COLON;
			t->key_len = t->key_len ? t->key_len : 1; /* an empty key is a key */
			if (t->request && t->depth == 1)
				end_key(t);
		} else {
			end_text(t);
			t->state = READ_VALUE;
		}
		return;
	}
	/* some letters are twins of others */
	t->odd |= t->request && t->depth == 1 && key && (uint8_t)c >= 0x80;
	t->text_bytes += t->text_counts && !key;
	/* one that is too long counts on, so that it matches nothing */
	if (key) {
		if (t->key_len < sizeof(t->key))
			t->key[t->key_len] = c;
		if (t->key_len < UINT8_MAX)
			t->key_len++;
	} else {
		if (t->text_len < sizeof(t->text))
			t->text[t->text_len] = c;
		if (t->text_len < UINT8_MAX)
			t->text_len++;
	}
}

static void take_number(struct tokens *t, char c)
{
	if (c >= '0' && c <= '9' && !t->number_ends) {
		if (t->number < NUMBER_MAX)
			t->number = t->number * 10 + (uint64_t)(c - '0');
	} else if (c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-' ||
		   (c >= '0' && c <= '9')) {
		t->number_ends = true;
	} else {
		end_number(t);
		t->state = READ_VALUE;
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			begin_value(t, c);
	}
}

static void take_json(struct tokens *t, char c)
{
	bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';

	if (t->broken)
		return;
	switch (t->state) {
	case READ_KEY_TEXT:
	case READ_TEXT:
		take_text(t, c);
		break;
	case READ_COLON:
		if (c == ':')
			t->state = READ_VALUE;
		else if (!space)
			t->broken = true;
		break;
	case READ_NUMBER:
		take_number(t, c);
		break;
	case READ_WORD:
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != 'E' &&
		    c != '+' && c != '-') {
			t->state = READ_VALUE;
			if (!space)
				begin_value(t, c);
		}
		break;
	default:
		if (!space)
			begin_value(t, c);
		break;
	}
}

/* "data: {...}"; every line is a document of its own. */
static void take_event(struct tokens *t, char c)
{
	static const char name[] = "data:";

	if (c == '\n' || c == '\r') {
		if (t->line == LINE_PAYLOAD && t->state == READ_NUMBER)
			take_json(t, ' ');
		t->line = LINE_BEGIN;
		begin_document(t);
	} else if (t->line < LINE_COLON) {
		t->line = c == name[t->line] ? t->line + 1 : LINE_OTHER;
	} else if (t->line != LINE_OTHER) {
		t->events_seen += t->line == LINE_COLON;
		t->line = LINE_PAYLOAD;
		take_json(t, c);
	}
}

void tokens_take(struct tokens *t, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (t->events)
			take_event(t, (char)bytes[i]);
		else
			take_json(t, (char)bytes[i]);
}

void tokens_end(struct tokens *t)
{
	if (t->events)
		take_event(t, '\n');
	else if (t->state == READ_NUMBER)
		take_json(t, ' ');
	if (t->cached_inside)
		t->input -= t->cache_read < t->input ? t->cache_read : t->input;
	t->cached_inside = false;
}

const struct price *price_find(const struct price *rows, size_t count, const char *model)
{
	const struct price *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < count; i++) {
		size_t n = strnlen(rows[i].model, sizeof(rows[i].model));
		bool open = n && rows[i].model[n - 1] == '*';

		if (open ? strncmp(rows[i].model, model, n - 1) != 0
			 : strcmp(rows[i].model, model) != 0)
			continue;
		n = 2 * (n - open) + !open; /* the whole name before the same beginning */
		if (!best || n > best_len) {
			best = &rows[i];
			best_len = n;
		}
	}
	return best;
}

uint64_t price_of(const struct price *p, const struct tokens *t)
{
	unsigned __int128 sum = (unsigned __int128)p->input * t->input +
				(unsigned __int128)p->output * t->output +
				(unsigned __int128)p->cache_read * t->cache_read +
				(unsigned __int128)p->cache_write * t->cache_write;

	sum = (sum + 999999) / 1000000;
	return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}

bool pace_take(struct pace *p, uint64_t per_minute, uint64_t now_ms, uint64_t *ret_wait_ms)
{
	unsigned __int128 gained;
	uint64_t most = per_minute > UINT64_MAX / 1000 ? UINT64_MAX : per_minute * 1000;

	*ret_wait_ms = UINT64_MAX;
	if (!per_minute)
		return false;
	if (!p->at_ms) {
		p->left_milli = most;
		p->at_ms = now_ms ? now_ms : 1;
	}
	if (now_ms > p->at_ms) {
		gained = (unsigned __int128)(now_ms - p->at_ms) * per_minute / 60;
		if (gained) {
			p->left_milli = gained + p->left_milli > most
						? most
						: p->left_milli + (uint64_t)gained;
			/* what is less than a thousandth is not lost */
			p->at_ms = p->left_milli == most
					   ? now_ms
					   : p->at_ms + (uint64_t)(gained * 60 / per_minute);
		}
	}
	if (p->left_milli >= 1000) {
		p->left_milli -= 1000;
		*ret_wait_ms = 0;
		return true;
	}
	*ret_wait_ms = ((1000 - p->left_milli) * 60 + per_minute - 1) / per_minute;
	return false;
}
