#include "syncopate/report/files/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syncopate::report {
namespace {

/// What a browser's parser finds in the element of the results.
std::string element(const std::string& page) {
  const std::string before = "<script type=\"application/json\" id=\"results\">";
  const size_t begin = page.find(before) + before.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

TEST(Page, HoldsTheResultsAndNothingInThemBecomesMarkup) {
  const nlohmann::json results{{"title", "</script><script>alert(1)</script><!-- & \"quoted\" ü"}, {"n", 3}};
  const std::string html = page(results.dump());
  EXPECT_EQ(nlohmann::json::parse(element(html)), results);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(element(page("null")), "null");
  EXPECT_NE(page("{\"n\":4}"), page("{\"n\":3}"));
}

TEST(Page, ListensWhereItIsTold) {
  EXPECT_NE(live_page("events").find("<meta name=\"syncopate-live\" content=\"events\">"), std::string::npos);
  EXPECT_EQ(page("null").find("<meta name=\"syncopate-live\""), std::string::npos);
  EXPECT_EQ(element(live_page("events")), "null");
}

}  // namespace
}  // namespace syncopate::report
