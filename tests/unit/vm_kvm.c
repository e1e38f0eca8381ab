/* Whether KVM runs guests: the measurement and the probe, on whatever machine this is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "lib/vm.h"

/* A host whose KVM emulates is found out by measuring alone; one whose KVM does not is not refused for anything else. */
static void test_measured(void **state)
{
	auto_fd kvm = open(VM_KVM, O_RDWR | O_CLOEXEC);
	struct ward_err e = { 0 }, p = { 0 };

	(void)state;
	if (kvm < 0) {
		assert_true(vm_probe_kvm(&p) < 0 && strstr(p.why, VM_KVM) && p.remedy[0]);
		return;
	}
	if (access("/sys/module/kvm_pvm", F_OK) == 0) {
		assert_int_equal(vm_measure_kvm(kvm, &e), -ENOTSUP);
		assert_non_null(strstr(e.why, "this host's KVM"));
		assert_int_equal(vm_probe_kvm(&p), -ENOTSUP);
		assert_non_null(strstr(p.why, "kvm_pvm"));
		return;
	}
	assert_int_equal(vm_measure_kvm(kvm, &e), vm_probe_kvm(&p));
}

/* What is no KVM at all is an error, not a crash. */
static void test_not_kvm(void **state)
{
	auto_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct ward_err e = { 0 };

	(void)state;
	assert_true(vm_measure_kvm(null, &e) < 0);
	assert_non_null(strstr(e.why, "KVM"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_not_kvm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
