/*
 * YAML into a tree. In: untrusted bytes. Out: nodes with positions, or errors. libyaml splits the
 * text; what makes YAML dangerous or ambiguous is refused here: anchors, aliases and merge keys
 * (one line would stand for many), tags, several documents, double keys, depth beyond 32, more than
 * 1 MiB, NUL characters. Words are null, true and false as the YAML core schema has them; yes, no,
 * on and off are words. A pure function, fuzzed (fuzz/policy.c).
 */
#include <string.h>
#include <yaml.h>

#include "policy/node.h"

struct frame {
	struct node *node;
	char *key; /* read, its value is to come; owned */
	struct place key_at;
	unsigned key_from;
};

struct builder {
	struct reader *r;
	yaml_parser_t parser;
	struct frame stack[NODE_DEPTH_MAX];
	unsigned depth;
	unsigned documents;
	struct node *root;
	bool done;
	/* the end was reached: the tree is whole, even where something in it is refused */
	bool complete;
};

static struct place place_of(yaml_mark_t m)
{
	return (struct place){ (unsigned)m.line + 1, (unsigned)m.column + 1 };
}

static void report_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	const char *problem = p->problem ? p->problem : "unreadable";
	const char *context = p->context ? p->context : "";
	const char *hint = NULL;
	struct place at = place_of(p->problem_mark);

	if (p->error == YAML_MEMORY_ERROR) {
		reader_out_of_memory(b->r);
		return;
	}
	if (p->error == YAML_READER_ERROR) { /* has an offset only */
		reader_error(b->r, (struct place){ 1, 1 }, NULL,
			     "not YAML: %s (value 0x%x at byte %zu)", problem,
			     (unsigned)p->problem_value, p->problem_offset);
		return;
	}
	if (strstr(context, "alias") || strstr(context, "anchor") || strstr(context, "tag"))
		hint = "a value that begins with *, & or ! must be in quotes: \"*.key\"";
	else if (strstr(problem, "character that cannot start any token"))
		hint = "indent with spaces, and put values that begin with @, ` or % in quotes";
	reader_error(b->r, at, hint, "not YAML: %s%s%s", context, *context ? ", " : "", problem);
}

static enum node_kind kind_of_word(const char *text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE" };

	if (*text && !strchr("~nNtTfF", *text))
		return NODE_WORD;
	for (size_t i = 0; i < ARRAY_LEN(nulls); i++)
		if (strcmp(text, nulls[i]) == 0)
			return NODE_NULL;
	for (size_t i = 0; i < ARRAY_LEN(bools); i++)
		if (strcmp(text, bools[i]) == 0)
			return NODE_BOOL;
	return NODE_WORD;
}

/* Puts a finished value where it belongs; takes it. */
static void place_node(struct builder *b, struct node *n)
{
	struct frame *top;

	if (!b->depth) {
		node_free(b->root);
		b->root = n;
		return;
	}
	top = &b->stack[b->depth - 1];
	if (top->node->kind == NODE_MAP) {
		n->key = take_ptr(top->key);
		n->key_line = top->key_at.line;
		n->key_column = top->key_at.column;
		n->key_from = top->key_from;
	}
	node_add(b->r, top->node, n);
}

static bool wants_key(const struct builder *b)
{
	return b->depth && b->stack[b->depth - 1].node->kind == NODE_MAP &&
	       !b->stack[b->depth - 1].key;
}

static bool refuse_extras(struct builder *b, const yaml_char_t *anchor, const yaml_char_t *tag,
			  struct place at)
{
	static const char quote[] = "write the value itself; if it is text, put it in quotes";

	if (anchor)
		reader_error(b->r, at, quote, "anchors (&name) are not part of a policy");
	if (tag)
		reader_error(b->r, at, quote, "tags (!name) are not part of a policy");
	return anchor || tag;
}

static void on_scalar(struct builder *b, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	size_t n = ev->data.scalar.length;
	bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct place at = place_of(ev->start_mark);
	enum node_kind kind = plain ? kind_of_word(text) : NODE_STRING;
	struct node *new;

	refuse_extras(b, ev->data.scalar.anchor, ev->data.scalar.tag, at);
	if (memchr(text, '\0', n)) {
		reader_error(b->r, at, NULL, "a NUL character (\\0) is not part of any value");
		n = strlen(text);
	}
	if (wants_key(b)) {
		struct frame *top = &b->stack[b->depth - 1];

		if (plain && strcmp(text, "<<") == 0)
			reader_error(b->r, at, "write the keys themselves",
				     "merge keys (<<) are not part of a policy");
		top->key = strndup(text, n);
		top->key_at = at;
		top->key_from = (unsigned)ev->start_mark.index;
		if (!top->key)
			reader_out_of_memory(b->r);
		b->done = !top->key;
		return;
	}
	if (kind == NODE_BOOL) {
		text = *text == 't' || *text == 'T' ? "true" : "false";
		n = strlen(text);
	}
	new = node_new(b->r, kind, at, text, n);
	b->done = !new;
	if (!new)
		return;
	new->from = (unsigned)ev->start_mark.index;
	new->to = (unsigned)ev->end_mark.index;
	new->block = ev->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
		     ev->data.scalar.style == YAML_FOLDED_SCALAR_STYLE;
	place_node(b, new);
}

static void on_start(struct builder *b, enum node_kind kind, const yaml_event_t *ev, bool flow)
{
	struct place at = place_of(ev->start_mark);
	struct node *new;

	if (wants_key(b)) {
		reader_error(b->r, at, NULL, "a key must be a word, not a list or map");
		b->done = true;
		return;
	}
	if (b->depth == NODE_DEPTH_MAX) {
		reader_error(b->r, at, NULL, "more than %d levels deep", NODE_DEPTH_MAX);
		b->done = true;
		return;
	}
	new = node_new(b->r, kind, at, NULL, 0);
	b->done = !new;
	if (!new)
		return;
	new->from = (unsigned)ev->start_mark.index;
	new->flow = flow;
	b->stack[b->depth++] = (struct frame){ .node = new };
}

static void on_end(struct builder *b, const yaml_event_t *ev)
{
	struct node *n = b->stack[--b->depth].node;

	n->to = (unsigned)ev->end_mark.index;
	place_node(b, n);
}

static void on_event(struct builder *b, const yaml_event_t *ev)
{
	struct place at = place_of(ev->start_mark);

	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++) {
			reader_error(b->r, at, "split the file",
				     "a policy is one document, a second one begins here");
			b->done = true;
		}
		break;
	case YAML_ALIAS_EVENT:
		reader_error(b->r, at, "write the value itself; if it is text, put it in quotes",
			     "aliases (*name) are not part of a policy");
		b->done = true;
		break;
	case YAML_SCALAR_EVENT:
		on_scalar(b, ev);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_extras(b, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, at);
		on_start(b, NODE_LIST, ev,
			 ev->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_extras(b, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, at);
		on_start(b, NODE_MAP, ev, ev->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		on_end(b, ev);
		break;
	case YAML_STREAM_END_EVENT:
		b->done = b->complete = true;
		break;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
}

static void run(struct builder *b)
{
	while (!b->done) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&b->parser, &ev)) {
			report_syntax(b);
			break;
		}
		on_event(b, &ev);
		yaml_event_delete(&ev);
	}
	while (b->depth) {
		b->depth--;
		node_free(b->stack[b->depth].node);
		free(b->stack[b->depth].key);
	}
}

struct node *yaml_read(struct reader *r, const uint8_t *bytes, size_t n)
{
	struct builder b = { .r = r };

	if (!yaml_parser_initialize(&b.parser)) {
		reader_out_of_memory(r);
		return NULL;
	}
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, bytes, n);
	run(&b);
	yaml_parser_delete(&b.parser);
	if (b.complete)
		return b.root;
	node_free(b.root);
	return NULL;
}
