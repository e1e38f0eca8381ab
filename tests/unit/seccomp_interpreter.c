/*
 * Runs filters as data, as the kernel would: no jump may leave the program, no load the call's
 * description.
 */
#include "seccomp_interpreter.h"

#include <linux/audit.h>
#include <string.h>

struct sock_filter code[SECCOMP_PROGRAM_MAX];
size_t code_len;
unsigned steps;

void take(unsigned set, unsigned flags)
{
	assert_int_equal(seccomp_program(set, flags, code, SECCOMP_PROGRAM_MAX, &code_len), 0);
}

uint32_t run(const struct seccomp_data *d)
{
	uint32_t a = 0;
	size_t pc = 0;

	for (steps = 0;; steps++) {
		assert_in_range(pc, 0, code_len - 1);
		const struct sock_filter *i = &code[pc++];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_in_range(i->k, 0, sizeof(*d) - 4);
			assert_int_equal(i->k % 4, 0);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %zu: code %#x", pc - 1, i->code);
		}
	}
}

uint32_t fate(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct seccomp_data data = { (int)nr, AUDIT_ARCH_X86_64, 0, { a, b, c, d, 0, 0 } };

	return run(&data);
}

uint32_t by_int(long nr, unsigned arg, uint32_t value, const uint64_t args[6])
{
	uint32_t first = 0;

	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		struct seccomp_data data = { (int)nr, AUDIT_ARCH_X86_64, 0, { 0 } };

		if (args)
			memcpy(data.args, args, sizeof(data.args));
		data.args[arg] = halves[i] | value;
		uint32_t r = run(&data);

		if (i == 0)
			first = r;
		assert_int_equal(r, first);
	}
	return first;
}
