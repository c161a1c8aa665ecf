"""check_folders.py goes red on a folder without a README and on one that is too long."""
import unittest

from planted import PlantedTree

import check_folders


class Folders(PlantedTree):
    def setUp(self):
        super().setUp()
        for bad in check_folders.check(self.root):
            self.write(bad.split(":")[0] + "/README.md", "# name\n\nWhat lives here.\n")

    def test_a_tree_with_a_readme_in_each_folder_is_green(self):
        self.assertEqual(check_folders.check(self.root), [])

    def test_a_source_folder_without_a_readme_is_found(self):
        (self.root / "reconcilers/taint/README.md").unlink()
        self.assert_one(check_folders.check(self.root), "reconcilers/taint", "no README.md")

    def test_a_test_folder_without_a_readme_is_found(self):
        self.write("tests/core/a_test.cc", "")
        self.write("tests/README.md", "# Tests\n")
        self.assert_one(check_folders.check(self.root), "tests/core", "no README.md")

    def test_a_readme_of_more_than_forty_lines_is_found(self):
        self.write("src/README.md", "# src\n" + "line\n" * 40)
        self.assert_one(check_folders.check(self.root), "src/README.md", "more than 40")

    def test_a_readme_without_a_heading_is_found(self):
        self.write("src/README.md", "What lives here.\n")
        self.assert_one(check_folders.check(self.root), "src/README.md", "no heading")

    def test_a_readme_that_clang_format_rewrote_is_found(self):
        for mangled in ("#src\n\nWords.\n", "# src - app / cli\n\nWords.\n", "# src\n\n" + " " * 30 + "bounded\n"):
            self.write("src/README.md", mangled)
            self.assert_one(check_folders.check(self.root), "src/README.md", "clang-format")


if __name__ == "__main__":
    unittest.main()
