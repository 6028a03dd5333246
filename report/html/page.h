// One HTML file that opens without a network: the template of this folder with its data as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace daydream {

// Data of the page, <script type="application/json" id="ID"> in it.
struct PageBlock {
  std::string_view id;  // "whatif"; letters and '-' only
  std::string json;
};

// page.html with style.css and the scripts. A browser runs only these: the page's content security
// policy allows nothing but their SHA-256, and no connection. Text of `title` and of the blocks is
// inert whatever is in it: '<' is written as &lt; in the title and as \u003c in JSON, where it can
// stand in strings only. REQUIRES: each block is JSON.
std::string HtmlPage(std::string_view title, std::span<const PageBlock> blocks);

}  // namespace daydream
