// The demo world only: its people sign in with a click on their name.
for (const button of document.querySelectorAll("[data-user]")) {
  button.addEventListener("click", () => {
    const form = document.querySelector('form[action$="/login/"]');
    form.elements.login.value = button.dataset.user;
    form.elements.password.value = button.dataset.password;
    form.requestSubmit();
  });
}
