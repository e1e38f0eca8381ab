/* Tokens of answers as services really give them, prices, and the pace of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/own.h"
#include "rules/tokens.h"

static const struct {
	bool events;
	const char *text, *model;
	uint64_t input, output, read, write;
} cases[] = {
	{ false,
	  "{\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{\"message\":{"
	  "\"content\":\"hi\"}}],"
	  "\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10,\"total_tokens\":29,\"prompt_"
	  "tokens_details\":{\"cached_tokens\":4}}}",
	  "gpt-4o-2024-08-06", 15, 10, 4, 0 },
	{ false,
	  "{\"content\":[{\"text\":\"Hi!\",\"type\":\"text\"}],\"model\":\"claude-opus-4\","
	  "\"usage\":{\"input_tokens\":2095,\"output_tokens\":503,"
	  "\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":50}}",
	  "claude-opus-4", 2095, 503, 50, 100 },
	{ true,
	  "data: "
	  "{\"model\":\"gpt-4o\",\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n"
	  "data: "
	  "{\"model\":\"gpt-4o\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_"
	  "tokens\":9}}\n\ndata: [DONE]\n\n",
	  "gpt-4o", 7, 9, 0, 0 },
	{ true,
	  "event: message_start\r\ndata: "
	  "{\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_"
	  "tokens\":25,\"output_tokens\":1}}}\r\n\r\n"
	  "event: message_delta\r\ndata: "
	  "{\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}",
	  "claude-x", 25, 15, 0, 0 },
	{ true,
	  "event: response.completed\ndata: "
	  "{\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5\",\"usage\":{\"input_"
	  "tokens\":37,"
	  "\"input_tokens_details\":{\"cached_tokens\":10},\"output_tokens\":11}}}\n\n",
	  "gpt-5", 27, 11, 10, 0 },
	/* what a model says about tokens is only text, and so is what tools and images carry */
	{ false,
	  "{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"{\\\"usage\\\":{\\\"prompt_"
	  "tokens\\\":99}}\",\"usage\":{\"prompt_tokens\":98}}}],"
	  "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
	  "m", 1, 2, 0, 0 },
	{ true,
	  "data: {\"choices\":[{\"delta\":{\"content\":\"\\ndata: "
	  "{\\\"usage\\\":{\\\"completion_tokens\\\":5}}\"}}]}\n\n",
	  "", 0, 0, 0, 0 },
	{ false, "not json \"usage\":{\"prompt_tokens\":5}", "", 0, 0, 0, 0 },
	{ false, "{\"usage\":{\"prompt_tokens\":12.7,\"completion_tokens\":-3}}", "", 12, 0, 0, 0 },
	{ false, "{\"usage\":{\"prompt_tokens\":99999999999999999999999999}}", "", 9999999999999999,
	  0, 0, 0 },
};

static void test_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t piece = 1; piece < 200; piece += 33) {
			struct tokens t;
			size_t n = strlen(cases[i].text);

			tokens_begin(&t, cases[i].events);
			for (size_t at = 0; at < n; at += piece)
				tokens_take(&t, (const uint8_t *)cases[i].text + at,
					    n - at < piece ? n - at : piece);
			tokens_end(&t);
			if (t.input != cases[i].input || t.output != cases[i].output ||
			    t.cache_read != cases[i].read || t.cache_write != cases[i].write ||
			    strcmp(t.model, cases[i].model) != 0)
				fail_msg("case %zu in pieces of %zu: %lu %lu %lu %lu %s", i, piece,
					 t.input, t.output, t.cache_read, t.cache_write, t.model);
		}
}

static void test_prices(void **state)
{
	static const struct price rows[] = { { "gpt-4o*", 2500000, 10000000, 1250000, 0, 1 },
					     { "gpt-4o-mini*", 150000, 600000, 75000, 0, 1 },
					     { "gpt-4o-mini", 1, 1, 1, 1, 1 },
					     { "*", 9, 9, 9, 9, 1 } };
	struct tokens t = { .input = 1000, .output = 500, .cache_read = 200 };

	(void)state;
	assert_ptr_equal(price_find(rows, 4, "gpt-4o-2024"), &rows[0]);
	assert_ptr_equal(price_find(rows, 4, "gpt-4o-mini-x"), &rows[1]);
	assert_ptr_equal(price_find(rows, 4, "gpt-4o-mini"), &rows[2]);
	assert_ptr_equal(price_find(rows, 4, "other"), &rows[3]);
	assert_null(price_find(rows, 3, "other"));
	assert_int_equal(price_of(&rows[0], &t), 2500 + 5000 + 250);
	t = (struct tokens){ .input = 1 };
	assert_int_equal(price_of(&rows[3], &t), 1);
	t.input = UINT64_MAX;
	assert_true(price_of(&(struct price){ .input = UINT64_MAX }, &t) == UINT64_MAX);
}

static void test_requests(void **state)
{
	static const struct {
		const char *text, *model;
		bool odd, whole;
		uint64_t most, choices;
		bool later;
	} wishes[] = {
		{ "{\"model\":\"m1\",\"max_tokens\":7}", "m1", false, true, 7, 1, false },
		{ " { \"n\" : 3, \"max_completion_tokens\":9, "
		  "\"messages\":[{\"model\":\"x\",\"max_tokens\":1}],\"model\":\"m1\"} \n",
		  "m1", false, true, 9, 3, false },
		{ "{\"model\":\"m1\",\"max_tokens\":7,\"max_output_tokens\":8}", "m1", false, true,
		  8, 1, false },
		{ "{\"model\":\"m1\",\"model\":\"m1\"}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"model\":\"m2\"}", "m2", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"mod\\u0065l\":\"m2\"}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m\\u0031\"}", "m?0031", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_tokens\":1e9}", "m1", true, true, 1, 1, false },
		{ "{\"model\":\"m1\"", "m1", false, false, 0, 1, false },
		{ "{\"model\":\"m1\"}{\"model\":\"m2\"}", "m1", true, true, 0, 1, false },
		{ "[{\"model\":\"m1\"}]", "", false, true, 0, 1, false },
		{ "\x1f\x8b", "", false, false, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_tokens\":1,\"max_tokens\":null}", "m1", true, true, 1, 1,
		  false },
		{ "{\"model\":\"m1\",\"max_tokens\":\"100000\"}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_tokens\": -1}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"n\":[5]}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_tokens\":1,\"MAX_TOKENS\":9}", "m1", true, true, 1, 1,
		  false },
		{ "{\"model\":\"m1\",\"Model\":\"m2\"}", "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_to\xe2\x84\xaa"
		  "ens\":9}",
		  "m1", true, true, 0, 1, false },
		{ "{\"model\":\"m1\",\"max_tokens\" : null, \"n\" : 2 , "
		  "\"x\":[\"y\",-1],\"z\":\"\xe2\x84\xaa\",\"t\":{\"Model\":\"a\"}}",
		  "m1", false, true, 0, 2, false },
		{ "{\"model\":\"m1\",\"background\":false,\"stream\":true}", "m1", false, true, 0,
		  1, false },
		{ "{\"model\":\"m1\",\"background\" : true}", "m1", false, true, 0, 1, true },
		{ "{\"model\":\"m1\",\"background\":\"on\"}", "m1", false, true, 0, 1, true },
		{ "{\"model\":\"m1\",\"background\":1}", "m1", false, true, 0, 1, true },
		{ "{\"model\":\"m1\",\"tools\":[{\"background\":true}]}", "m1", false, true, 0, 1,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
		for (size_t piece = 1; piece < 60; piece += 7) {
			size_t n = strlen(wishes[i].text);
			struct tokens t;

			tokens_begin_request(&t);
			for (size_t at = 0; at < n; at += piece)
				tokens_take(&t, (const uint8_t *)wishes[i].text + at,
					    n - at < piece ? n - at : piece);
			tokens_end(&t);
			if (t.odd != wishes[i].odd || t.whole != wishes[i].whole ||
			    t.most != wishes[i].most || t.choices != wishes[i].choices ||
			    t.later != wishes[i].later || strcmp(t.model, wishes[i].model) != 0)
				fail_msg("case %zu in pieces of %zu: odd %d whole %d most %lu "
					 "choices %lu %s",
					 i, piece, t.odd, t.whole, t.most, t.choices, t.model);
		}
}

/* Requests whose bytes say nothing about how much a model reads. */
static void test_references(void **state)
{
	static const struct {
		const char *text;
		bool refers;
	} rows[] = {
		{ "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"file_id\"}]}",
		  false },
		{ "{\"tools\":[{\"name\":\"fetch\",\"input_schema\":{\"type\":\"object\","
		  "\"properties\":{\"url\":{\"type\":\"string\"}}}}]}",
		  false },
		{ "{\"messages\":[{\"content\":[{\"type\":\"tool_use\",\"input\":{\"url\":\"https:/"
		  "/a.example\"}}]}]}",
		  false },
		{ "{\"messages\":[{\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
		  "\"base64\",\"data\":\"AA\"}}]}]}",
		  false },
		{ "{\"messages\":[{\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"url\","
		  "\"url\":\"https://a.example\"}}]}]}",
		  true },
		{ "{\"messages\":[{\"content\":[{\"type\":\"document\",\"source\":{\"type\":"
		  "\"file\",\"file_id\":\"f\"}}]}]}",
		  true },
		{ "{\"messages\":[{\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
		  "\"https://a.example\"}}]}]}",
		  true },
		{ "{\"input\":[{\"content\":[{\"type\":\"input_image\",\"image_url\":\"https://"
		  "a.example\"}]}]}",
		  true },
		{ "{\"input\":[{\"content\":[{\"FILE_URL\":\"https://a.example\"}]}]}", true },
		{ "{\"input\":[{\"content\":[{\"file_\\u0069d\":\"f\"}]}]}", true },
		{ "{\"previous_response_id\":\"r\"}", true },
		{ "{\"previous_response_id\": null}", false },
		{ "{\"metadata\":{\"conversation\":\"c\"}}", false },
		{ "{\"conversation\":{\"id\":\"c\"}}", true },
		{ "{\"prompt\":\"text\"}", false },
		{ "{\"prompt\":{\"id\":\"p\"}}", true },
		{ "{\"tools\":[{\"type\":\"function\",\"name\":\"web_search\"}]}", false },
		{ "{\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"x\"}]}", true },
		{ "{\"tools\":[{\"type\":\"mcp\",\"server_label\":\"x\"}]}", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece < 60; piece += 7) {
			size_t n = strlen(rows[i].text);
			struct tokens t;

			tokens_begin_request(&t);
			for (size_t at = 0; at < n; at += piece)
				tokens_take(&t, (const uint8_t *)rows[i].text + at,
					    n - at < piece ? n - at : piece);
			tokens_end(&t);
			if (t.refers != rows[i].refers)
				fail_msg("%s in pieces of %zu: %d", rows[i].text, piece, t.refers);
		}
}

/* The usage of a stream counts when it is that of its end. */
static void test_beginnings(void **state)
{
	static const char
		start[] = "data: "
			  "{\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{"
			  "\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
		end[] = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n";
	struct tokens t;

	(void)state;
	tokens_begin(&t, true);
	tokens_take(&t, (const uint8_t *)start, strlen(start));
	assert_false(tokens_said(&t));
	assert_int_equal(t.input, 9);
	tokens_take(&t, (const uint8_t *)end, strlen(end));
	tokens_end(&t);
	assert_true(tokens_said(&t));
	assert_int_equal(t.output, 5);
}

static void test_estimates(void **state)
{
	static const char text[] =
		"data: {\"choices\":[{\"delta\":{\"content\":\"twelve bytes\"}}]}\n\n"
		"event: x\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"four\"}}\n\ndata: "
		"[DONE]\n\n";
	struct tokens t;

	(void)state;
	tokens_begin(&t, true);
	tokens_take(&t, (const uint8_t *)text, strlen(text));
	tokens_end(&t);
	assert_false(tokens_said(&t));
	assert_int_equal(t.text_bytes, 16);
	assert_int_equal(t.events_seen, 3);
}

static void test_pace(void **state)
{
	struct pace p = { 0 };
	uint64_t wait;

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_true(pace_take(&p, 6, 1000, &wait));
	assert_false(pace_take(&p, 6, 1000, &wait));
	assert_int_equal(wait, 10000);
	assert_false(pace_take(&p, 6, 10999, &wait));
	assert_true(pace_take(&p, 6, 11001, &wait));
	assert_false(pace_take(&p, 0, 1, &wait));
	/* looking often must not cost what time gives */
	for (uint64_t now = 20000; now < 20100; now++)
		(void)pace_take(&p, 6, now, &wait);
	assert_true(pace_take(&p, 6, 31000, &wait));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),    cmocka_unit_test(test_prices),
		cmocka_unit_test(test_pace),      cmocka_unit_test(test_requests),
		cmocka_unit_test(test_estimates), cmocka_unit_test(test_references),
		cmocka_unit_test(test_beginnings)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
