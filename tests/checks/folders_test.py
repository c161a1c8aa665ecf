"""check_folders.py goes red on a folder without a README, on one that is too long, and on any page that clang-format has rewritten."""
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

    def test_a_page_that_clang_format_rewrote_is_found_wherever_it_is(self):
        for folder in ("tests/cluster/story", "bench/peer/standin", "docs/decisions", "manifests/examples"):
            self.write_readmes_to(folder)
        for page in ("README.md", "tests/cluster/story/README.md", "bench/peer/standin/README.md", "manifests/examples/README.md",
                     "docs/brake.md", "docs/decisions/2026-01-02-three-words.md"):
            for mangled in ("#name\n", "# 2026 - 01 - 02 : Three words\n", "# name\n\n" + " " * 30 + "bounded\n"):
                self.write(page, mangled)
                self.assert_one(check_folders.check(self.root), page, "clang-format")
            self.write(page, "# name\n")
            self.assertEqual(check_folders.check(self.root), [])

    def test_what_a_page_quotes_may_be_indented(self):
        self.write_readmes_to("docs")
        self.write("docs/brake.md", "# name\n\n```\n" + " " * 30 + "printed\n#comment\n```\n")
        self.assertEqual(check_folders.check(self.root), [])

    def test_a_readme_of_any_folder_has_at_most_forty_lines_and_a_page_more(self):
        self.write_readmes_to("tests/cluster/story")
        self.write_readmes_to("docs")
        for page in ("README.md", "docs/README.md", "docs/brake.md"):
            self.write(page, "# name\n" + "line\n" * 40)
        self.assertEqual(check_folders.check(self.root), [])
        self.write("tests/cluster/story/README.md", "# name\n" + "line\n" * 40)
        self.assert_one(check_folders.check(self.root), "tests/cluster/story/README.md", "more than 40")

    def write_readmes_to(self, folder):
        """A good README in the folder and in each above it."""
        parts = folder.split("/")
        for count in range(1, len(parts) + 1):
            self.write("/".join(parts[:count]) + "/README.md", "# name\n")


if __name__ == "__main__":
    unittest.main()
