"""check_tests.py goes red on tests that would test nothing."""
import unittest

from planted import PlantedTree

import check_tests


class Tests(PlantedTree):
    def check(self, text, path="tests/core/a_test.cc"):
        self.write(path, text)
        return check_tests.check(self.root)

    def test_a_sentence_with_a_check_is_green(self):
        self.assertEqual(self.check('TEST_CASE("a -> b, #1 [x]"\n  " and more") {\n  CHECK(1 == 1);\n}\n'), [])

    def test_a_semicolon_in_a_name_is_found(self):
        self.assert_one(self.check('TEST_CASE("one; two") { CHECK(true); }\n'), "a_test.cc:1", "no ';'")

    def test_a_skipped_test_is_found(self):
        self.assert_one(self.check('TEST_CASE("x" * doctest::skip()) { CHECK(true); }\n'), "doctest::skip")

    def test_two_tests_of_one_name_in_one_suite_are_found(self):
        self.write("tests/core/b_test.cc", 'TEST_CASE("x") { CHECK(true); }\n')
        self.assert_one(self.check('TEST_CASE("x") { CHECK(true); }\n'), "the same name")

    def test_the_same_name_in_two_suites_is_green(self):
        self.write("tests/scenarios/b_test.cc", 'TEST_CASE("x") { CHECK(true); }\n')
        self.assertEqual(self.check('TEST_CASE("x") { CHECK(true); }\n'), [])

    def test_a_pause_is_found_in_core_and_left_to_loopback(self):
        text = 'TEST_CASE("x") { std::this_thread::sleep_for(1ms); CHECK(true); }\n'
        self.assertEqual(self.check(text, "tests/loopback/a_test.cc"), [])
        self.assert_one(self.check(text), "no pause")


if __name__ == "__main__":
    unittest.main()
