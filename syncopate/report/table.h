#pragma once

#include <string>
#include <vector>

namespace syncopate::report {

/// Rows of text as a table for a terminal: columns as wide as their widest cell, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void add(std::vector<std::string> row);  ///< as many cells as the head
  std::string text() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace syncopate::report
