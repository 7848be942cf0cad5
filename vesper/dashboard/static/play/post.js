/** A request that the server refused; `remedy` says what to do, `answer` is the whole JSON answer. */
export class PostError extends Error {
  constructor(message, remedy, answer) {
    super(message);
    this.remedy = remedy;
    this.answer = answer;
  }
}

/** Send JSON to an endpoint of the playground, and return its JSON answer. Throws `PostError`. */
export async function post(path, body) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-csrf": document.querySelector("meta[name=csrf]").content,
        "x-problems": "inline", // a text with errors is no fault of the page: browsers log any other status as one
      },
      body: JSON.stringify(body),
    });
  } catch {
    throw new PostError("the server does not answer", "start it again with `vesper play`, then reload the page", {});
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok || response.headers.get("content-type") === "application/problem+json") {
    throw new PostError(answer.detail ?? `the server answered ${response.status}`, answer.remedy ?? "", answer);
  }
  return answer;
}
