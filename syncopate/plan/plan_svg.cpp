#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "syncopate/base/text.h"
#include "syncopate/plan/plan.h"

namespace syncopate::plan {
namespace {

struct Point {
  double x = 0, y = 0;
};

/// A box on the map: a region, or a host where all are in one region.
struct Box {
  std::string name;
  std::vector<int> devices{};
  int columns = 1;
  double width = 0, height = 0;
  Point middle{};
  double inside_bytes = 0;
};

struct Wire {
  double activations = 0, gradients = 0;  ///< bytes in an iteration, both directions
};

constexpr double kPadding = 10, kName = 22, kMargin = 28, kHead = 76, kFoot = 74;
constexpr const char* kActivations = "#0072b2";
constexpr const char* kGradients = "#d55e00";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

/// From the first stage to the last, light enough for dark letters, told apart also by those who see few
/// colours: it grows from blue over green and yellow to red.
std::string stage_colour(int stage, int stages) {
  static constexpr std::array<std::array<double, 3>, 6> kAnchors{
      {{136, 170, 232}, {120, 200, 220}, {148, 212, 150}, {238, 222, 110}, {245, 178, 100}, {232, 132, 128}}};
  const double way = stages > 1 ? static_cast<double>(stage) / (stages - 1) * (kAnchors.size() - 1) : 0;
  const size_t from = std::min(static_cast<size_t>(way), kAnchors.size() - 2);
  const double share = way - static_cast<double>(from);
  std::array<int, 3> colour{};
  for (size_t k = 0; k < colour.size(); ++k) {
    const double mixed = kAnchors[from][k] * (1 - share) + kAnchors[from + 1][k] * share;
    colour[k] = static_cast<int>(std::lround(mixed));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]);
}

class Map {
 public:
  explicit Map(const Plan& plan) : plan_(plan), topology_(plan.request.topology) {
    stage_.assign(static_cast<size_t>(topology_.devices()), -1);
    for (int stage = 0; stage < plan.layout.stages; ++stage) {
      for (int replica = 0; replica < plan.layout.replicas; ++replica)
        stage_[static_cast<size_t>(plan.layout.at(stage, replica))] = stage;
    }
    make_boxes();
    place_boxes();
    add_traffic();
  }

  std::string draw() const {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif\" "
        "font-size=\"13\" fill=\"#1f2430\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width_, height_);
    text += head() + wires();
    for (const Box& box : boxes_) text += draw_box(box);
    return text + foot() + "</svg>\n";
  }

 private:
  void make_boxes() {
    const std::vector<std::string> regions = topology_.regions();
    std::map<std::string, size_t> number;
    box_of_.resize(static_cast<size_t>(topology_.devices()));
    for (int device = 0; device < topology_.devices(); ++device) {
      const network::Host& host = topology_.hosts()[static_cast<size_t>(topology_.host_of(device))];
      const std::string& name = regions.size() > 1 ? host.region : host.name;
      const auto [found, fresh] = number.emplace(name, boxes_.size());
      if (fresh) boxes_.push_back({.name = name});
      boxes_[found->second].devices.push_back(device);
      box_of_[static_cast<size_t>(device)] = found->second;
    }
    size_t most = 0;
    for (const Box& box : boxes_) most = std::max(most, box.devices.size());
    cell_ = most <= 36 ? 30 : most <= 100 ? 22 : 14;
    for (Box& box : boxes_) {
      const auto count = static_cast<double>(box.devices.size());
      box.columns = static_cast<int>(std::ceil(std::sqrt(count * 1.4)));
      const double rows = std::ceil(count / box.columns);
      const double letters = 7.5 * static_cast<double>(columns_of(box.name));
      box.width = std::max(box.columns * cell_, letters) + 2 * kPadding;
      box.height = rows * cell_ + 2 * kPadding + kName;
    }
  }

  /// On an ellipse, wider than high; one alone in the middle.
  void place_boxes() {
    double around = 0, widest = 0, highest = 0;
    for (const Box& box : boxes_) {
      around += std::max(box.width, box.height) + 34;
      widest = std::max(widest, box.width);
      highest = std::max(highest, box.height);
    }
    const bool alone = boxes_.size() == 1;
    const double radius = alone ? 0 : std::max(150.0, around / (2 * std::numbers::pi));
    const double x = radius * 1.25, y = radius * 0.95;
    width_ = std::max(860.0, 2 * x + widest + 2 * kMargin);
    height_ = kHead + 2 * y + highest + kMargin + kFoot;
    middle_ = {width_ / 2, kHead + y + highest / 2};
    for (size_t k = 0; k < boxes_.size(); ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(boxes_.size()) -
          std::numbers::pi / 2;
      boxes_[k].middle = {middle_.x + x * std::cos(angle), middle_.y + y * std::sin(angle)};
    }
  }

  void add_traffic() {
    for (const Traffic& traffic : plan_.traffic) {
      const size_t a = box_of_[static_cast<size_t>(traffic.from)],
                   b = box_of_[static_cast<size_t>(traffic.to)];
      if (a == b) {
        boxes_[a].inside_bytes += traffic.bytes;
        continue;
      }
      Wire& wire = wires_[{std::min(a, b), std::max(a, b)}];
      (traffic.gradients ? wire.gradients : wire.activations) += traffic.bytes;
      most_bytes_ = std::max(most_bytes_, std::max(wire.gradients, wire.activations));
    }
  }

  std::string head() const {
    const Layout& layout = plan_.layout;
    std::string text = fmt::format(
        "<text x=\"{}\" y=\"34\" font-size=\"19\" font-weight=\"600\">{}: {} stage{} x {} replica{}</text>\n",
        kMargin, escaped(topology_.name()), layout.stages, layout.stages == 1 ? "" : "s", layout.replicas,
        layout.replicas == 1 ? "" : "s");
    std::string parts = fmt::format("{:.4g} s an iteration, predicted: ", plan_.cost.total_s);
    if (plan_.cost.compute_s > 0) parts += fmt::format("{:.3g} s computing, ", plan_.cost.compute_s);
    parts += fmt::format("{:.3g} s along the pipeline, {:.3g} s averaging gradients", plan_.cost.pipeline_s,
                         plan_.cost.data_parallel_s);
    if (plan_.cost.total_s > 0 && layout.stages * layout.replicas > 1)
      parts += fmt::format("; random layouts take {:.3g} s", plan_.random_s);
    return text + fmt::format("<text x=\"{}\" y=\"56\" fill=\"#586072\">{}</text>\n", kMargin, parts);
  }

  std::string curve(const Box& a, const Box& b, double bend, double bytes, const char* colour,
                    const char* what) const {
    if (bytes <= 0) return "";
    // Towards the middle, so that lines do not cross boxes; `bend` keeps the two kinds apart.
    const Point mean{(a.middle.x + b.middle.x) / 2, (a.middle.y + b.middle.y) / 2};
    const Point control{mean.x + (middle_.x - mean.x) * bend, mean.y + (middle_.y - mean.y) * bend};
    const double dx = b.middle.x - a.middle.x, dy = b.middle.y - a.middle.y;
    const double length = std::max(1.0, std::hypot(dx, dy)), aside = 60 * (bend - 0.5);
    const double thick = 1 + 9 * std::sqrt(bytes / most_bytes_);
    return fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
        "stroke-opacity=\"0.5\" "
        "stroke-width=\"{:.1f}\" stroke-linecap=\"round\"><title>{} - {}: {} of {} in an "
        "iteration</title></path>\n",
        a.middle.x, a.middle.y, control.x - dy / length * aside, control.y + dx / length * aside, b.middle.x,
        b.middle.y, colour, thick, escaped(a.name), escaped(b.name), bytes_for_people(bytes), what);
  }

  std::string wires() const {
    std::string text;
    for (const auto& [ends, wire] : wires_) {
      const Box &a = boxes_[ends.first], &b = boxes_[ends.second];
      text += curve(a, b, 0.62, wire.gradients, kGradients, "gradients");
      text += curve(a, b, 0.38, wire.activations, kActivations, "activations");
    }
    return text;
  }

  std::string draw_box(const Box& box) const {
    const double left = box.middle.x - box.width / 2, top = box.middle.y - box.height / 2;
    std::string text = fmt::format(
        "<g><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" fill=\"#f6f7f9\" "
        "stroke=\"#c3c8d2\"/><text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"600\" "
        "text-anchor=\"middle\">{}</text>"
        "<title>{}: {} inside in an iteration</title>\n",
        left, top, box.width, box.height, box.middle.x, top + kPadding + 9, escaped(box.name),
        escaped(box.name), bytes_for_people(box.inside_bytes));
    const double first = box.middle.x - box.columns * cell_ / 2;
    for (size_t k = 0; k < box.devices.size(); ++k) {
      const int device = box.devices[k], stage = stage_[static_cast<size_t>(device)];
      const double x = first + static_cast<double>(k % static_cast<size_t>(box.columns)) * cell_;
      const double y = top + kPadding + kName + std::floor(static_cast<double>(k) / box.columns) * cell_;
      const std::string& host = topology_.hosts()[static_cast<size_t>(topology_.host_of(device))].name;
      text += fmt::format(
          "<g><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\"{}/>",
          x + 1, y + 1, cell_ - 2, cell_ - 2,
          stage < 0 ? "#ffffff" : stage_colour(stage, plan_.layout.stages),
          stage < 0 ? " stroke=\"#c3c8d2\" stroke-dasharray=\"3 2\"" : "");
      if (stage >= 0 && cell_ >= 20)
        text +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{}\">{}</text>",
                        x + cell_ / 2, y + cell_ / 2 + 4.5, cell_ >= 28 ? 13 : 11, stage);
      text += fmt::format("<title>device {} on {}: {}</title></g>\n", device, escaped(host),
                          stage < 0 ? "unused" : fmt::format("stage {}", stage));
    }
    return text + "</g>\n";
  }

  std::string foot() const {
    const int stages = plan_.layout.stages;
    const double y = height_ - 52;
    const double step = std::min(46.0, (width_ - 2 * kMargin - 60) / stages);
    std::string text =
        fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#586072\">stage</text>\n", kMargin, y + 13);
    for (int stage = 0; stage < stages; ++stage) {
      const double x = kMargin + 46 + stage * step;
      text += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>", x,
                          y, step - (step > 12 ? 2 : 0), stage_colour(stage, stages));
      if (step >= 20)
        text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                            x + (step - 2) / 2, y + 13.5, stage);
    }
    const auto key = [&](double x, const char* colour, const char* words) {
      return fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-opacity=\"0.5\" "
          "stroke-width=\"7\"/><text x=\"{4}\" y=\"{5}\" fill=\"#586072\">{6}</text>\n",
          x, x + 34, height_ - 16, colour, x + 42, height_ - 11.5, words);
    };
    text += key(kMargin, kActivations, "activations and their gradients");
    text += key(kMargin + 262, kGradients, "gradients of replicas");
    if (most_bytes_ > 0)
      text += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#586072\">widest: {} an iteration</text>\n",
                          kMargin + 460, height_ - 11.5, bytes_for_people(most_bytes_));
    return text;
  }

  const Plan& plan_;
  const network::Topology& topology_;
  std::vector<int> stage_;  ///< of each device; -1: unused
  std::vector<Box> boxes_;
  std::vector<size_t> box_of_;
  std::map<std::pair<size_t, size_t>, Wire> wires_;
  double most_bytes_ = 0, cell_ = 30, width_ = 0, height_ = 0;
  Point middle_{};
};

}  // namespace

std::string to_svg(const Plan& plan) { return Map(plan).draw(); }

}  // namespace syncopate::plan
